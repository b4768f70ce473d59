"""`dittybag --version --verbose`: what to copy into a bug report. It contains no secrets."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import click

from dittybag import __version__
from dittybag.config import SettingsError, home, settings_from_process

#: The package that each extra installs.
_EXTRAS: Final = {"oauth": "pyjwt", "postgres": "asyncpg"}
_MAX_MESSAGE: Final = 300


def print_version_details() -> None:
    """Print one fact per line."""
    for label, value in _details():
        click.echo(f"{label + ':':<13} {value}")


def _details() -> Iterator[tuple[str, str]]:
    yield "dittybag", __version__
    yield "Python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"
    yield "platform", f"{platform.platform()}, {platform.machine()}"
    yield "SQLite", _sqlite()
    extras = [f"{extra} ({name} {found})" for extra, name in _EXTRAS.items() if (found := _version(name))]
    yield "extras", ", ".join(extras) or "none"
    yield "data folder", _printable(home(os.environ))
    try:
        settings = settings_from_process()
    except SettingsError as error:
        yield "settings", f"not valid: {_printable(str(error))[:_MAX_MESSAGE]}"
        return
    from dittybag.assembly.store_factory import is_file

    # Not its URL, which names hosts and may contain a password.
    yield "database", "SQLite" if is_file(settings.database) else "PostgreSQL"
    yield "profile", _printable(settings.profile)


def _sqlite() -> str:
    try:
        import apsw
    except ImportError as error:
        # A broken installation is what the report may be about.
        return f"apsw cannot be imported: {error}"
    return f"{apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}"


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _printable(text: str) -> str:
    return click.format_filename(text).replace("\n", " ")
