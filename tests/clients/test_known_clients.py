"""The location of each client's configuration file, on every platform."""

from __future__ import annotations

from pathlib import Path

import pytest

from dittybag.clients.known_clients import CLIENTS, ConfigScope, LocalMachine

HOME = Path("/home/me")
WORK = Path("/work/site")


def file(client: str, scope: ConfigScope = "user", platform: str = "linux", **environ: str) -> str | None:
    found = CLIENTS[client].file(scope, LocalMachine(environ, platform, HOME, WORK))
    return None if found is None else found.as_posix()


def test_eight_clients_are_known() -> None:
    assert list(CLIENTS) == [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "gemini",
        "windsurf",
        "zed",
    ]


SETTINGS = {"linux": ".config", "darwin": "Library/Application Support"}


@pytest.mark.parametrize(
    ("client", "user", "project"),
    [
        ("claude-code", ".claude.json", ".mcp.json"),
        ("claude-desktop", "SETTINGS/Claude/claude_desktop_config.json", None),
        ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
        ("vscode", "SETTINGS/Code/User/mcp.json", ".vscode/mcp.json"),
        ("codex", ".codex/config.toml", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json", ".gemini/settings.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", None),
        ("zed", ".config/zed/settings.json", ".zed/settings.json"),
    ],
)
@pytest.mark.parametrize("platform", SETTINGS)
def test_every_client_has_its_own_file(client: str, user: str, project: str | None, platform: str) -> None:
    assert file(client, platform=platform) == f"/home/me/{user.replace('SETTINGS', SETTINGS[platform])}"
    expected = None if project is None else f"/work/site/{project}"
    assert file(client, "project", platform) == expected


@pytest.mark.parametrize(
    ("client", "platform", "variable", "expected"),
    [
        ("claude-code", "linux", "CLAUDE_CONFIG_DIR", "/x/.claude.json"),
        ("codex", "darwin", "CODEX_HOME", "/x/config.toml"),
        ("gemini", "linux", "GEMINI_CLI_HOME", "/x/.gemini/settings.json"),
        ("claude-desktop", "linux", "XDG_CONFIG_HOME", "/x/Claude/claude_desktop_config.json"),
        ("vscode", "linux", "XDG_CONFIG_HOME", "/x/Code/User/mcp.json"),
        ("zed", "linux", "XDG_CONFIG_HOME", "/x/zed/settings.json"),
        ("zed", "darwin", "XDG_CONFIG_HOME", "/home/me/.config/zed/settings.json"),
    ],
)
def test_environment_variables_of_clients_are_respected(
    client: str, platform: str, variable: str, expected: str
) -> None:
    assert file(client, "user", platform, **{variable: "/x"}) == expected
    assert file(client, "user", platform, **{variable: ""}) == file(client, "user", platform)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_is_detected_by_its_folder_or_its_program(tmp_path: Path, client: str) -> None:
    known = CLIENTS[client]
    machine = LocalMachine({"PATH": str(tmp_path / "bin")}, "linux", tmp_path / "home", tmp_path)
    machine.home.mkdir()
    assert not known.is_installed(machine)
    for program in known.programs:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / program).write_text("#!/bin/sh\n")
        assert not known.is_installed(machine)
        (tmp_path / "bin" / program).chmod(0o755)
        assert known.is_installed(machine)
        (tmp_path / "bin" / program).unlink()
    path = known.file("user", machine)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    assert known.is_installed(machine)
