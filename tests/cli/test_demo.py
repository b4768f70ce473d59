"""`satchel demo`: a tour that leaves one's own data alone."""

from __future__ import annotations

from pathlib import Path

from tests.cli.running import data, satchel


def test_the_tour_shows_a_real_session_and_what_to_do_next(tmp_path: Path) -> None:
    done = satchel(tmp_path / "home", "demo")
    assert done.stderr == ""
    for number in range(1, 10):
        assert f"\n{number}. " in done.stdout
    assert "claude mcp add satchel -- " in done.stdout
    assert '"mcpServers"' in done.stdout
    # Nothing was made where a person's own data would be.
    assert not (tmp_path / "home").exists()


def test_a_narrow_terminal_gets_one_column(tmp_path: Path) -> None:
    text = satchel(tmp_path, "demo", variables={"COLUMNS": "60", "FORCE_COLOR": "1"}).stdout
    assert "-> initialize" in text
    assert not any("-> " in line and "<- " in line for line in text.splitlines())


def test_the_exchanges_as_json(tmp_path: Path) -> None:
    exchanges = data(satchel(tmp_path, "demo", "--json"))["exchanges"]
    assert [step["request"]["method"] for step in exchanges[:2]] == ["initialize", "prompts/list"]
    refused = [step for step in exchanges if step["answer"]["result"].get("isError")]
    assert [step["request"]["params"]["name"] for step in refused] == ["create_prompt"]


def test_the_sample_can_be_kept_and_overwrites_nothing(tmp_path: Path) -> None:
    kept = tmp_path / "sample.db"
    assert str(kept) in satchel(tmp_path, "demo", "--keep", str(kept)).stdout.replace("\n", "")
    listed = data(satchel(tmp_path, "project", "list", "--db", str(kept), "--json"))["projects"]
    sample = {project["name"]: project for project in listed}["auth-module"]
    assert (sample["prompts"], sample["resources"]) == (5, 3)
    before = kept.read_bytes()
    assert "overwrites nothing" in satchel(tmp_path, "demo", "--keep", str(kept), status=2).stderr
    assert kept.read_bytes() == before
