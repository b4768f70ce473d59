"""Opens links in the browser of the user."""

from __future__ import annotations

import os

from dittybag import config


def can_show_browser() -> bool:
    """Whether a browser can open a window: not over SSH, and not on a text console."""
    return config.can_show_browser(os.environ)


def open_browser(link: str) -> bool:
    """Open a link and return whether that succeeded. Without a display, no text browser is started."""
    if not can_show_browser():
        return False
    import webbrowser

    try:
        return webbrowser.open(link)
    except (webbrowser.Error, OSError):
        return False
