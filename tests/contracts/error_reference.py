"""Generates docs/reference/errors.md from the error tree and its translation tables.

`python -m tests.contracts.error_reference` writes it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from dittybag.cli.error_output import exit_status
from dittybag.contracts.error_formats import bounded_json_error
from dittybag.domain.errors import DittybagError, Invalid
from dittybag.http.endpoint import _handshake_status, _stateless_status
from dittybag.protocol import wire_errors
from dittybag.protocol.eras.revisions import REVISIONS
from dittybag.protocol.eras.versions import HANDSHAKE_VERSIONS, STATELESS_VERSIONS
from dittybag.protocol.types import Text
from dittybag.protocol.wire_errors import ProtocolError
from dittybag.web.browser_requests import status_of
from tests.stdio_server_process import ROOT

REFERENCE: Path = ROOT / "docs" / "reference" / "errors.md"

#: The part of the page above this line is not generated.
MARKER = "<!-- Generated below this line by: python -m tests.contracts.error_reference -->\n"

#: Codes that only commands have, because they concern the command line.
COMMAND_CODES: Final = {
    "LATER_CHANGES": "`undo`: later changes would be overwritten; `--force` does it anyway",
    "NONE_READY": "`task next`: no task was ready, or became ready in time",
    "NOTHING_TO_UNDO": "`undo`: no change matches",
    "NOT_CONFIRMED": "The command asks for confirmation, and nobody can answer; `--yes` confirms",
    "REFUSED": "The request is not valid or not allowed",
    "STOPPED": "The command was interrupted with Ctrl-C",
    "USAGE": "An option, argument or variable is not valid",
}

#: Codes of errors that only stateless requests can have.
STATELESS_CODES: Final = (wire_errors.HEADER_MISMATCH, wire_errors.UNSUPPORTED_VERSION)
#: Protocol errors by class; their codes come from the code.
PROTOCOL_ERRORS: Final = {
    "ParseError": "The message is not valid JSON",
    "InvalidRequest": "The message is not a valid request, or the HTTP request was refused",
    "MethodNotFound": "The revision or the server has no such method",
    "InvalidParams": (
        "A parameter is missing or not valid; an unknown tool or prompt, or a prompt that cannot be rendered"
    ),
    "InternalError": "The database cannot be used, or an error in Dittybag; the log has the details",
    "UnknownResource": "No resource has the URI",
    "HeaderMismatch": "A header such as `Mcp-Method` does not match the body",
    "MissingClientCapability": "The request needs a capability that the client has not declared",
    "UnsupportedVersion": "The server does not support the revision that `_meta` names",
    "UrlElicitationRequired": "The user must visit a URL first; Dittybag's own tools never answer with it",
}


def all_errors(kind: type[DittybagError] = DittybagError) -> Iterator[type[DittybagError]]:
    """Yield all errors below a class, in the order of their definition, each before its subclasses."""
    for error in kind.__subclasses__():
        if error.__module__.startswith("dittybag."):
            yield error
            yield from all_errors(error)


def tool_code(error: type[DittybagError]) -> str:
    """Return the code of an error in results of tools that answer with JSON."""
    if issubclass(error, Invalid):
        return "`INVALID_INPUT`, `INVALID_TITLE` or `INVALID_TAG`"
    content = bounded_json_error(error.__new__(error)).content[0]
    assert isinstance(content, Text)
    return f"`{msgspec.json.decode(content.text)['error']['code']}`"


def render_page() -> str:
    """Return the reference page."""
    parts = [REFERENCE.read_text().partition(MARKER)[0] + MARKER, "## All errors\n"]
    parts.append("| code | when | tools with codes | exit status | web UI |\n|---|---|---|---|---|")
    seen = set()
    for error in all_errors():
        if error.code in seen or error.code == "ERROR":
            continue
        seen.add(error.code)
        # The tables translate by class; the facts of an error do not matter.
        instance = error.__new__(error)
        parts.append(
            f"| `{error.code}` | {_meaning(error)} | {tool_code(error)}"
            f" | {exit_status(instance).value} | {status_of(instance)} |"
        )
    parts.append("\n## Codes of commands only\n\n| code | when |\n|---|---|")
    parts += [f"| `{code}` | {meaning} |" for code, meaning in COMMAND_CODES.items()]
    parts += ["", *_protocol_errors()]
    return "\n".join(parts).rstrip("\n") + "\n"


def _meaning(error: type[DittybagError]) -> str:
    text = re.split(r"\.\s|;|\n\n", (error.__doc__ or "").strip())[0].rstrip(".")
    return " ".join(text.split())


def _protocol_errors() -> Iterator[str]:
    yield "## JSON-RPC errors\n"
    yield "Errors outside the results of tools, on every transport. Over HTTP, they also have a status.\n"
    newest = f"HTTP, {STATELESS_VERSIONS[0]}"
    yield f"| code | when | HTTP, up to {HANDSHAKE_VERSIONS[-1]} | {newest} |\n|---|---|---|---|"
    for name, meaning in PROTOCOL_ERRORS.items():
        error = getattr(wire_errors, name)
        codes = {version: _code_in(error, version) for version in REVISIONS}
        shown = ", ".join(f"`{code}`" for code in dict.fromkeys(filter(None, codes.values())))
        old, new = codes[HANDSHAKE_VERSIONS[-1]], codes[STATELESS_VERSIONS[0]]
        yield (
            f"| {shown} | {meaning} | {_handshake_status(old) if old else 'not used'}"
            f" | {_stateless_status(new) if new else 'not used'} |"
        )


def _code_in(error: type[ProtocolError], version: str) -> int | None:
    if error.code in STATELESS_CODES and version not in STATELESS_VERSIONS:
        return None
    return error.__new__(error).wire_code(REVISIONS[version])


if __name__ == "__main__":
    REFERENCE.write_text(render_page())
