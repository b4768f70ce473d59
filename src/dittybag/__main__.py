"""Entry point of `python -m dittybag` and of the `dittybag` command."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from typing import Final

from dittybag import __version__

#: A short command and the start of a server create fewer objects than this, and collecting them would take a
#: twentieth of the time.
_OBJECTS_BETWEEN_COLLECTIONS: Final = 100_000


def main() -> int:
    if str(sys.platform) == "win32":
        # Before everything that only exists elsewhere.
        from dittybag.cli import windows

        return windows.refuse(sys.argv[1:])
    status = _run(sys.argv[1:])
    # The process ends: the collector need not visit every object once more.
    gc.freeze()
    return status


def _run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    thresholds = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    if arguments and arguments[0] == "serve":
        # Every MCP client starts its own process, so start-up must not pay for importing click.
        _import_msgspec()
        # Before `logging`, which is quicker to import by way of it.
        import dittybag.protocol.lazy_asyncio  # noqa: F401
        from dittybag.cli import serve

        return serve.run(arguments[1:], lambda: _collect_again(thresholds))
    if arguments and arguments[0] == "prime" and "--help" not in arguments:
        # Before everything that can fail.
        from dittybag.cli import prime_process

        return prime_process.run(arguments[1:], lambda: _run_command(arguments))
    if list(arguments) == ["--version"]:
        sys.stdout.write(f"dittybag {__version__}\n")
        return 0
    return _run_command(arguments)


def _run_command(arguments: Sequence[str]) -> int:
    _import_msgspec()
    from dittybag.cli.commands import main

    return main(arguments)


def _collect_again(thresholds: tuple[int, int, int]) -> None:
    """Collect garbage as usual, because a server runs for long."""
    # What it has now, it keeps: no collection need visit it.
    gc.freeze()
    gc.set_threshold(*thresholds)


def _import_msgspec() -> None:
    """Import msgspec without modules that it does not need: they take as long to import as msgspec itself."""
    from dittybag.protocol.lazy_modules import placeholders

    # It prefers typing_extensions to `typing`, which has the same since Python 3.11. `None`: not installed.
    is_blocked = sys.modules.setdefault("typing_extensions", None) is None  # type: ignore[arg-type]
    # `uuid` only wants to know the system.
    with placeholders("textwrap", platform={"system": lambda: os.uname().sysname}):
        import msgspec  # noqa: F401
    if is_blocked:
        del sys.modules["typing_extensions"]


if __name__ == "__main__":
    sys.exit(main())
