"""The data and configuration that a release has written, as kept in `releases/`."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.upgrades.client_snapshot import Snapshot

RELEASES: Final = Path(__file__).parent / "releases"


class Expected(Struct, frozen=True, kw_only=True):
    """What must be found in a database."""

    #: What `dittybag export` of the release printed, with the history.
    export: dict[str, Any]
    #: What `dittybag user list` and `dittybag token list` printed, and the text of a token of alice.
    users: dict[str, Any]
    tokens: dict[str, Any]
    token: str
    #: The number of the newest migration, and of the rows in each table.
    schema: int = 0
    rows: dict[str, int] = {}


class ClientFiles(Struct, frozen=True, kw_only=True):
    """The files of clients, and Dittybag's records of them, before and after the release edited them."""

    before: Snapshot
    after: Snapshot


class KnownSettings(Struct, frozen=True, kw_only=True):
    """What `dittybag serve` of the release can be set up with."""

    options: list[str]
    variables: list[str]


class GoldenRelease(Struct, frozen=True):
    """The folder of a release."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    def expected(self, backend: str) -> Expected:
        return msgspec.json.decode((self.folder / f"{backend}.json").read_bytes(), type=Expected)

    def clients(self) -> ClientFiles:
        return msgspec.json.decode((self.folder / "clients.json").read_bytes(), type=ClientFiles)

    def settings(self) -> KnownSettings:
        return msgspec.json.decode((self.folder / "settings.json").read_bytes(), type=KnownSettings)

    def write_database(self, file: Path) -> None:
        """Write the SQLite database to a file."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.decompress((self.folder / "sqlite.db.gz").read_bytes()))

    def postgres_dump(self) -> str:
        return gzip.decompress((self.folder / "postgres.sql.gz").read_bytes()).decode()


def golden_releases(file: str = "") -> list[GoldenRelease]:
    """Return the releases that have a file, by name.

    Those of schemas between two releases have only the files that differ from the neighbouring ones.
    """
    folders = [folder for folder in sorted(RELEASES.iterdir()) if folder.is_dir()]
    return [GoldenRelease(folder) for folder in folders if (folder / file).exists()]
