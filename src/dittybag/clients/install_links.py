"""Links that install a server in a client: the client opens, shows the entry and asks the user."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

#: Characters that `encodeURIComponent` of JavaScript leaves as they are.
_UNRESERVED: Final = "!'()*"
_CURSOR: Final = "cursor://anysphere.cursor-deeplink/mcp/install"


def install_link(client: str, name: str, entry: Mapping[str, Any]) -> str | None:
    """Return the link that adds an entry to a client; `None` if the client has no such links.

    `entry`: what `dittybag connect` would write.
    """
    if client == "vscode":
        return f"vscode:mcp/install?{_quote(_json({'name': name, **entry}))}"
    if client == "cursor":
        config = base64.b64encode(_json(entry).encode()).decode()
        return f"{_CURSOR}?name={_quote(name)}&config={_quote(config)}"
    return None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote(text: str) -> str:
    return quote(text, safe=_UNRESERVED)
