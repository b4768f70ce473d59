"""`dittybag doctor` names file systems whose locks are not reliable, as Linux, WSL and macOS list them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dittybag.assembly import mounts
from dittybag.assembly.doctor_checks import run_checks
from dittybag.config import settings
from dittybag.domain.health import Finding
from tests.cli.cli_runner import dittybag

ROOT = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"


def finding(home: Path) -> Finding | None:
    report = run_checks(settings({"DITTYBAG_HOME": str(home)}), lambda *_: None)
    return next((found for found in report.findings if found.topic == "file system"), None)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("volume") / "a home"
    dittybag(home, "task", "add", "x")
    return home


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ("- nfs4 nas:/homes rw", "a network file system (nfs4)"),
        ("- cifs //nas/homes rw", "a network file system (cifs)"),
        ("- smb3 //nas/homes rw", "a network file system (smb3)"),
        ("shared:7 - fuse.sshfs nas: rw", "a network file system (fuse.sshfs)"),
        ("- 9p host rw,trans=virtio", "a network file system (9p)"),
        ("- virtiofs mount0 rw", "a folder that is shared with another system (virtiofs)"),
        ("- drvfs C:\\134 rw", "a folder that is shared with another system (drvfs)"),
    ],
)
def test_a_file_system_without_reliable_locks_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, mount: str, expected: str
) -> None:
    point = str(home.parent).replace(" ", "\\040")
    table = home.parent / "mountinfo"
    table.write_text(f"{ROOT}36 22 0:31 / {point} rw,noatime {mount}\n")
    monkeypatch.setattr(mounts, "_MOUNT_TABLE", str(table))
    found = finding(home)
    assert found is not None
    assert (found.level, found.message.split(" is on ")[1].split(",")[0]) == ("note", expected)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("//ann@nas._smb._tcp.local/homes on {} (smbfs, nodev, nosuid, mounted by ann)", "smbfs"),
        ("nas:/homes on {} (nfs, nodev, nosuid, mounted by ann)", "nfs"),
        ("//ann@nas.local/homes on {} (afpfs, nodev, nosuid, mounted by ann)", "afpfs"),
        ("https://dav.example.org/ on {} (webdav, nodev, noexec, nosuid, mounted by ann)", "webdav"),
        ("/dev/disk4s1 on {} (apfs, local, nodev, nosuid, journaled, noowners)", None),
        ("map auto_home on {} (autofs, automounted, nobrowse)", None),
    ],
)
def test_network_volumes_of_macos_are_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch, line: str, kind: str | None
) -> None:
    """macOS has no mount table to read: `mount` prints it."""
    volumes = (
        "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)",
        "devfs on /dev (devfs, local, nobrowse)",
        line.format(home.parent),
        f"//ann@nas/other on {home}-2 (smbfs, nodev, nosuid)",
    )
    program = home.parent / "mount"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(volumes) + "\nEND\n")
    program.chmod(0o755)
    monkeypatch.setattr(mounts, "_MOUNT_TABLE", str(home / "none"))
    monkeypatch.setattr(mounts, "_MOUNT_COMMAND", str(program))
    found = finding(home)
    assert (found is None) == (kind is None)
    assert found is None or f"a network file system ({kind})" in found.message


def test_a_mounted_folder_hides_what_was_mounted_there_before(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = home.parent / "mountinfo"
    point = str(home).replace(" ", "\\040")
    nfs = f"30 22 0:30 / {point} rw - nfs4 nas:/ rw\n"
    table.write_text(f"{ROOT}{nfs}31 22 0:31 / {point} rw - ext4 /dev/sdb1 rw\n")
    monkeypatch.setattr(mounts, "_MOUNT_TABLE", str(table))
    assert finding(home) is None


def test_without_a_list_of_file_systems_nothing_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "_MOUNT_TABLE", str(home / "none"))
    monkeypatch.setattr(mounts, "_MOUNT_COMMAND", str(home / "none"))
    assert finding(home) is None
