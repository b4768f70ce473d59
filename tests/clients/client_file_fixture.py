"""A fixture for tests that edit a client's configuration file on an empty machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dittybag.clients.connector import ConfigTarget, ConnectResult, Launch, connect, disconnect
from dittybag.clients.known_clients import CLIENTS, ConfigScope, LocalMachine

LAUNCH = Launch("/opt/dittybag/bin/dittybag", (), ("serve",), {"DITTYBAG_HOME": "/srv/bag"})
PROJECT_LAUNCH = Launch("/opt/dittybag/bin/dittybag", (), ("serve", "--project", "auth module"))


class ClientFileFixture:
    """A client's configuration file, and Dittybag's data folder."""

    def __init__(
        self, folder: Path, client: str, scope: ConfigScope = "user", name: str = "dittybag"
    ) -> None:
        self.machine = LocalMachine({}, "linux", folder / "home", folder / "work")
        self.data_folder = folder / "dittybag"
        target = ConfigTarget.resolve(CLIENTS[client], scope, self.machine, name)
        assert target is not None
        self.target = target
        self.file = target.file

    def write(self, data: str | bytes) -> bytes:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        data = data.encode() if isinstance(data, str) else data
        self.file.write_bytes(data)
        return data

    def read(self) -> bytes:
        return self.file.read_bytes()

    def text(self) -> str:
        return self.read().decode()

    def connect(self, launch: Launch = LAUNCH, *, dry_run: bool = False) -> ConnectResult:
        return connect(self.target, launch, str(self.data_folder), dry_run=dry_run)

    def remove(self, *, dry_run: bool = False) -> ConnectResult:
        return disconnect(self.target, str(self.data_folder), dry_run=dry_run)

    def entry(self, name: str = "dittybag") -> Any:
        return self.target.client.format.entries(self.text().removeprefix("\ufeff")).get(name)

    def check_round_trip(self, before: bytes) -> None:
        """Connect, connect again, update and remove; check that the file is the same as before."""
        assert self.connect().state == "connected"
        assert LAUNCH.matches(self.entry())
        connected = self.read()
        assert self.connect().state == "unchanged"
        assert self.read() == connected
        assert self.connect(PROJECT_LAUNCH).state == "updated"
        assert self.entry()["args"] == ["serve", "--project", "auth module"]
        assert self.remove().state == "removed"
        assert self.read() == before
        assert self.copies() == []

    def copies(self) -> list[Path]:
        """The copies of files from before the first entry."""
        return [file for file in (self.data_folder / "connect").glob("*") if file.name != "lock"]

    def delete_copies(self) -> None:
        for copy in self.copies():
            copy.unlink()

    def all_files(self) -> dict[str, bytes]:
        """The content of every file, by path."""
        root = self.data_folder.parent
        return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
