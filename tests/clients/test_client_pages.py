"""Every client that `dittybag connect` knows has a page with its command and the files that are changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dittybag.clients.known_clients import CLIENTS, LocalMachine
from tests.stdio_server_process import ROOT

PAGES = ROOT / "docs" / "clients"
HOME = Path("/home/ann")
LINUX = LocalMachine({}, "linux", HOME, Path("/home/ann/project"))


def page(client: str) -> str:
    return (PAGES / f"{client}.md").read_text(encoding="utf-8")


def from_home(file: Path) -> str:
    return f"~/{file.relative_to(HOME).as_posix()}"


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_names_the_commands_and_the_configuration_files(name: str) -> None:
    client, text = CLIENTS[name], page(name)
    file = client.file("user", LINUX)
    assert file is not None
    assert f"\ndittybag connect {name}" in text
    assert f"\ndittybag connect {name} --remove\n" in text
    assert f"`{from_home(file)}`" in text
    if client.project_file is None:
        assert "There is no `--scope project`" in text
    else:
        assert f"`{client.project_file}`" in text


@pytest.mark.parametrize("name", CLIENTS)
def test_the_page_links_to_the_facts_and_to_troubleshooting(name: str) -> None:
    anchor = CLIENTS[name].title.lower().replace(" ", "-")
    assert f"(../reference/clients.md#{anchor})" in page(name)
    assert "(../guides/troubleshooting.md)" in page(name)


def test_the_overview_links_to_every_page() -> None:
    overview = (PAGES / "index.md").read_text(encoding="utf-8")
    for name, client in CLIENTS.items():
        assert f"| [{client.title}]({name}.md) | `dittybag connect {name}` |" in overview
    assert {file.stem for file in PAGES.glob("*.md")} == {*CLIENTS, "index"}
