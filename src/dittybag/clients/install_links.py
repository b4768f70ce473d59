"""Links that install a server in a client: the client opens, shows the entry and asks the user."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

#: Opens `vscode:` links from pages that may only link to `https:`, such as a README.
_VSCODE_REDIRECT: Final = "https://insiders.vscode.dev/redirect?url="
#: Characters that `encodeURIComponent` of JavaScript leaves as they are.
_UNRESERVED: Final = "!'()*"
_CURSOR: Final = "cursor://anysphere.cursor-deeplink/mcp/install"
#: Likewise for `cursor:` links.
_CURSOR_REDIRECT: Final = "https://cursor.com/en/install-mcp"


def install_link(client: str, name: str, entry: Mapping[str, Any], *, redirect: bool = False) -> str | None:
    """Return the link that adds an entry to a client; `None` if the client has no such links.

    `entry`: what `dittybag connect` would write. `redirect`: a link that starts with `https:` and leads to
    the other one.
    """
    if client == "vscode":
        link = f"vscode:mcp/install?{_quote(_json({'name': name, **entry}))}"
        return _VSCODE_REDIRECT + _quote(link) if redirect else link
    if client == "cursor":
        config = base64.b64encode(_json(entry).encode()).decode()
        start = _CURSOR_REDIRECT if redirect else _CURSOR
        return f"{start}?name={_quote(name)}&config={_quote(config)}"
    return None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _quote(text: str) -> str:
    return quote(text, safe=_UNRESERVED)
