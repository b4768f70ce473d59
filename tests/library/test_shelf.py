"""The shelf: what is kept for the next start, what is served while libraries are read, and storms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from dittybag.domain.errors import LibraryPromptNotFound
from dittybag.library import indexer
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from tests.processes import children


def write(home: Path, name: str, count: int = 2, text: str = "Hello {{ who }}\n") -> Path:
    folder = home / "libraries" / name
    (folder / "prompts").mkdir(parents=True)
    for number in range(count):
        (folder / "prompts" / f"p{number}.md").write_text(text)
    manifest = "".join(
        f'[prompts.p{number}]\n[[prompts.p{number}.arguments]]\nname = "who"\n' for number in range(count)
    )
    (folder / "twig.toml").write_text(manifest)
    return folder


@asynccontextmanager
async def shelf(home: Path, *, start: bool = True) -> AsyncIterator[LibraryService]:
    renderer = TemplateRenderer()
    opened = LibraryService(Directories(str(home)), renderer)
    if start:
        opened.start()
    try:
        yield opened
    finally:
        await opened.close()
        renderer.close()


async def names(opened: LibraryService) -> list[str]:
    return [prompt.name for prompt in await opened.page("", 1000)]


async def until(ready: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Ask again and again, until it is so."""
    async with asyncio.timeout(seconds):
        while not await ready():  # noqa: ASYNC110  # nothing else tells what is on the shelf now
            await asyncio.sleep(0.01)


def cache_of(home: Path) -> Path:
    (file,) = (home / "cache").iterdir()
    return file


async def kept(home: Path) -> None:
    """A shelf has read the libraries once, and kept what they say."""

    async def written() -> bool:
        return (home / "cache").is_dir() and len(list((home / "cache").iterdir())) == 1

    async with shelf(home) as opened:
        await names(opened)
        await until(written)


async def test_the_next_start_parses_nothing(tmp_path: Path) -> None:
    write(tmp_path, "lib")
    await kept(tmp_path)
    before = children()
    async with shelf(tmp_path) as opened:
        assert await names(opened) == ["lib:p0", "lib:p1"]
        assert children() == before
        assert await opened.render("lib:p0", {"who": "Ann"}) == "Hello Ann\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone", "a folder"])
async def test_a_damaged_cache_is_no_more_than_a_slower_start(tmp_path: Path, damage: str) -> None:
    write(tmp_path, "lib")
    await kept(tmp_path)
    file = cache_of(tmp_path)
    content = bytearray(file.read_bytes())
    file.unlink()
    if damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "a folder":
        file.mkdir()
    async with shelf(tmp_path) as opened:
        assert await names(opened) == ["lib:p0", "lib:p1"]


async def test_what_has_changed_since_is_read_again(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")
    write(tmp_path, "other")
    await kept(tmp_path)
    with (folder / "twig.toml").open("a") as file:
        file.write("[prompts.p9]\n")
    async with shelf(tmp_path) as opened:
        assert await names(opened) == ["lib:p0", "lib:p1", "lib:p9", "other:p0", "other:p1"]


async def test_what_was_broken_is_not_kept_as_if_it_were_not(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")
    await kept(tmp_path)
    manifest = (folder / "twig.toml").read_text()

    async def served_with_a_problem() -> bool:
        (report,) = await opened.reports()
        return any("last good version" in problem.message for problem in report.problems)

    async with shelf(tmp_path) as opened:
        await names(opened)
        (folder / "twig.toml").write_text(manifest + "[oops\n")
        await until(served_with_a_problem)
        assert await names(opened) == ["lib:p0", "lib:p1"]
    async with shelf(tmp_path) as again:
        assert await names(again) == []


async def test_pages_come_in_the_order_of_names_while_the_rest_is_being_read(tmp_path: Path) -> None:
    for number in range(200):
        # In the order of folders, capitals come first.
        write(tmp_path, f"{'L' if number % 2 else 'l'}ib_{number:03}", count=1)
    expected = [f"lib_{number:03}:p0" for number in range(200)]
    async with shelf(tmp_path) as opened:
        page = [prompt.name for prompt in await opened.page("", 10)]
        assert page == expected[:10]
        assert [prompt.name for prompt in await opened.page("lib_150:p0", 1000)] == expected[151:]
        assert await names(opened) == expected


async def test_texts_without_room_are_read_when_they_are_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "_MAX_TEMPLATE_CHARS", 30)
    first, second = write(tmp_path, "a", count=1), write(tmp_path, "b", count=4)
    async with shelf(tmp_path, start=False) as opened:
        await opened.load()
        (second / "prompts" / "p0.md").write_text("New {{ who }}\n")
        (first / "prompts" / "p0.md").write_text("New {{ who }}\n")
        assert await opened.render("b:p0", {"who": "Bo"}) == "New Bo\n"
        assert await opened.render("a:p0", {"who": "Bo"}) == "Hello Bo\n"


async def test_a_library_that_vanishes_is_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")

    async def gone() -> bool:
        return await names(opened) == []

    async with shelf(tmp_path) as opened:
        await names(opened)
        folder.rename(tmp_path / "elsewhere")
        await until(gone)
        with pytest.raises(LibraryPromptNotFound):
            await opened.render("lib:p0", {})


async def test_after_a_storm_the_shelf_is_as_the_disk(tmp_path: Path) -> None:
    """In place, beside and renamed, half written, deleted, made anew: 3,000 changes as fast as they go."""
    folders = [write(tmp_path, f"lib_{number:02}", count=20) for number in range(50)]
    told: list[float] = []
    async with shelf(tmp_path) as opened:
        opened.subscribe(lambda: told.append(asyncio.get_running_loop().time()))
        await names(opened)
        for turn in range(3):
            for folder in folders:
                for number in range(20):
                    save(folder / "prompts" / f"p{number}.md", f"{folder.name} {number} {turn}\n", number)
            await asyncio.sleep(0)
        extra = write(tmp_path, "new", count=1, text="new\n")
        folders[0].rename(tmp_path / "away")

        async def as_the_disk() -> bool:
            try:
                texts = [
                    await opened.render(f"{folder.name}:p{number}", {}) == f"{folder.name} {number} 2\n"
                    for folder in folders[1:]
                    for number in range(20)
                ]
                new = await opened.render("new:p0", {})
            except LibraryPromptNotFound:
                return False
            return all(texts) and new == "new\n" and "lib_00:p0" not in await names(opened)

        await until(as_the_disk)
        assert extra.is_dir()
    assert told
    assert all(after - before >= 0.5 for before, after in pairwise(told))


def save(file: Path, text: str, number: int) -> None:
    """As editors and checkouts do: each in its own way."""
    if number % 4 == 0:
        beside = file.with_suffix(".tmp")
        beside.write_text(text)
        beside.replace(file)
    elif number % 4 == 1:
        with file.open("w") as opened:
            opened.write(text[:4])
            opened.flush()
            opened.write(text[4:])
    elif number % 4 == 2:
        file.unlink()
        file.write_text(text)
    else:
        file.write_text(text)


async def test_a_library_without_room_is_left_out_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "libraries" / name
        folder.mkdir(parents=True)
        (folder / "p.md").write_text("Words\n" * 10)
    monkeypatch.setattr(indexer, "_MAX_PROMPT_CHARS", 100)
    async with shelf(tmp_path, start=False) as opened:
        await opened.load()
        assert opened._indexer is not None
        # However often it is looked at.
        for _ in range(2):
            await opened._indexer.refresh(None)
            assert await names(opened) == ["a:p"]
            _, left_out = await opened.reports()
            assert [problem.message for problem in left_out.problems] == [
                "skipped: all libraries together have more than 64 MiB of prompts"
            ]
