"""A machine with nothing on it, on which configuration files are edited."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dittybag.clients.connector import ConfigTarget, ConnectResult, Launch, connect, disconnect
from dittybag.clients.known_clients import CLIENTS, ConfigScope, LocalMachine

LAUNCH = Launch("/opt/dittybag/bin/dittybag", (), ("serve",), {"DITTYBAG_HOME": "/srv/bag"})
OTHER = Launch("/opt/dittybag/bin/dittybag", (), ("serve", "--project", "auth module"))


class Place:
    """A client's file, and Dittybag's own folder."""

    def __init__(
        self, folder: Path, client: str, scope: ConfigScope = "user", name: str = "dittybag"
    ) -> None:
        self.machine = LocalMachine({}, "linux", folder / "home", folder / "work")
        self.ours = folder / "dittybag"
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
        return connect(self.target, launch, str(self.ours), dry_run=dry_run)

    def remove(self, *, dry_run: bool = False) -> ConnectResult:
        return disconnect(self.target, str(self.ours), dry_run=dry_run)

    def entry(self, name: str = "dittybag") -> Any:
        return self.target.client.format.entries(self.text().removeprefix("\ufeff")).get(name)

    def goes_there_and_back(self, before: bytes) -> None:
        """Connect, again, otherwise, and remove: the file is what it was before."""
        assert self.connect().state in ("connected", "updated")
        assert LAUNCH.matches(self.entry())
        connected = self.read()
        assert self.connect().state == "unchanged"
        assert self.read() == connected
        assert self.connect(OTHER).state == "updated"
        assert self.entry()["args"] == ["serve", "--project", "auth module"]
        assert self.remove().state == "removed"
        assert self.read() == before

    def forget(self) -> None:
        """Lose the record of what was done."""
        for record in (self.ours / "connect").glob("*.json"):
            record.unlink()

    def everything(self) -> dict[str, bytes]:
        """All files on this machine."""
        root = self.ours.parent
        return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}
