"""The icon of the server: that of the web UI, in a URL that every client can read."""

from __future__ import annotations

from typing import Final

from dittybag.protocol.types import Icon

_SVG: Final = (
    "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAzMiAzMiI+PHJlY3Qgd2lkdGg9IjMy"
    "IiBoZWlnaHQ9IjMyIiByeD0iOCIgZmlsbD0iI2I0NTQxYSIvPjxwYXRoIGQ9Ik05IDYuNTAwYzEgLjkgMi4zMDAuOSAzLjIwMC0u"
    "MyAxLjIwMCAxLjQwMCA0LjQwMCAxLjQwMCA1LjYwMCAwIC45IDEuMjAwIDIuMjAwIDEuMjAwIDMuMjAwLjMtLjMgMi0xLjIwMCAz"
    "LjUwMC0yLjIwMCA0LjcwMGgtNy42MDBjLTEtMS4yMDAtMS45MDAtMi43MDAtMi4yMDAtNC43MDB6IiBmaWxsPSIjZmZmIi8+PHBh"
    "dGggZD0iTTExLjIwMCAxMi44MDBDNy44MDAgMTUuMzAwIDYgMTguMzAwIDYgMjEuMjAwIDYgMjUgOC43MDAgMjcgMTIgMjdoNmMz"
    "LjMwMCAwIDYtMiA2LTUuODAwIDAtMi45MDAtMS44MDAtNS45MDAtNS4yMDAtOC40MDB6IiBmaWxsPSIjZmZmIi8+PHBhdGggZD0i"
    "TTE5IDEyYzMuNTAwLS42IDYgLjYgNyAzTTE5IDEyYzMgLjUgNSAyLjUwMCA1LjUwMCA1LjUwMCIgZmlsbD0ibm9uZSIgc3Ryb2tl"
    "PSIjZmZmIiBzdHJva2Utd2lkdGg9IjEuNTAwIiBzdHJva2UtbGluZWNhcD0icm91bmQiLz48L3N2Zz4="
)

ICONS: Final = (Icon(src=f"data:image/svg+xml;base64,{_SVG}", mime_type="image/svg+xml", sizes=("any",)),)
