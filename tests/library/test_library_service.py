"""The library service: the cache, the first load, and many changes at once."""

from __future__ import annotations

import asyncio
import unicodedata
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from dittybag.domain.errors import LibraryPromptNotFound
from dittybag.library import indexer, library_folders
from dittybag.library.library_folders import Directories
from dittybag.library.library_service import LibraryService
from dittybag.library.render.template_renderer import TemplateRenderer
from tests.child_processes import child_pids


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
async def running_service(home: Path, *, start: bool = True) -> AsyncIterator[LibraryService]:
    renderer = TemplateRenderer()
    service = LibraryService(Directories(str(home)), renderer)
    if start:
        service.start()
    try:
        yield service
    finally:
        await service.close()
        renderer.close()


async def names(service: LibraryService) -> list[str]:
    return [prompt.name for prompt in await service.page("", 1000)]


async def until(ready: Callable[[], Awaitable[bool]], seconds: float = 20.0) -> None:
    """Poll until the condition is true."""
    async with asyncio.timeout(seconds):
        while not await ready():  # noqa: ASYNC110  # the service has no event for this
            await asyncio.sleep(0.01)


def cache_of(home: Path) -> Path:
    (file,) = (home / "cache").iterdir()
    return file


async def fill_cache(home: Path) -> None:
    """Start a service once, so that it writes its cache."""

    async def written() -> bool:
        return any((home / "cache").glob("*.cache"))

    async with running_service(home) as service:
        await names(service)
        await until(written)


async def test_the_next_start_uses_the_cache(tmp_path: Path) -> None:
    write(tmp_path, "lib")
    await fill_cache(tmp_path)
    before = child_pids()
    async with running_service(tmp_path) as service:
        assert await names(service) == ["lib:p0", "lib:p1"]
        assert child_pids() == before
        assert await service.render("lib:p0", {"who": "Ann"}) == "Hello Ann\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "gone", "a folder"])
async def test_a_damaged_cache_only_slows_the_start(tmp_path: Path, damage: str) -> None:
    write(tmp_path, "lib")
    await fill_cache(tmp_path)
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
    async with running_service(tmp_path) as service:
        assert await names(service) == ["lib:p0", "lib:p1"]


async def test_files_changed_since_the_last_start_are_read_again(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")
    write(tmp_path, "other")
    await fill_cache(tmp_path)
    with (folder / "twig.toml").open("a") as file:
        file.write("[prompts.p9]\n")
    async with running_service(tmp_path) as service:
        assert await names(service) == ["lib:p0", "lib:p1", "lib:p9", "other:p0", "other:p1"]


async def test_broken_files_are_not_cached(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")
    await fill_cache(tmp_path)
    manifest = (folder / "twig.toml").read_text()

    async def served_with_a_problem() -> bool:
        (report,) = await service.reports()
        return any("last good version" in problem.message for problem in report.problems)

    async with running_service(tmp_path) as service:
        await names(service)
        (folder / "twig.toml").write_text(manifest + "[oops\n")
        await until(served_with_a_problem)
        assert await names(service) == ["lib:p0", "lib:p1"]
    async with running_service(tmp_path) as again:
        assert await names(again) == []


async def test_the_first_pages_are_served_in_order_while_libraries_load(tmp_path: Path) -> None:
    for number in range(200):
        # Folders are sorted with capitals first, libraries are not.
        write(tmp_path, f"{'L' if number % 2 else 'l'}ib_{number:03}", count=1)
    expected = [f"lib_{number:03}:p0" for number in range(200)]
    async with running_service(tmp_path) as service:
        page = [prompt.name for prompt in await service.page("", 10)]
        assert page == expected[:10]
        assert [prompt.name for prompt in await service.page("lib_150:p0", 1000)] == expected[151:]
        assert await names(service) == expected


async def test_a_deleted_library_is_no_longer_listed(tmp_path: Path) -> None:
    folder = write(tmp_path, "lib")

    async def gone() -> bool:
        return await names(service) == []

    async with running_service(tmp_path) as service:
        await names(service)
        folder.rename(tmp_path / "elsewhere")
        await until(gone)
        with pytest.raises(LibraryPromptNotFound):
            await service.render("lib:p0", {})


async def test_names_of_prompts_are_composed_that_a_file_system_stores_apart(tmp_path: Path) -> None:
    """Some file systems of macOS store a letter and its accent as two characters."""
    folder = tmp_path / "libraries" / "cafe"
    folder.mkdir(parents=True)
    (folder / unicodedata.normalize("NFD", "résumé.md")).write_text("text")
    async with running_service(tmp_path) as service:
        assert await names(service) == [unicodedata.normalize("NFC", "cafe:résumé")]


def test_a_change_that_the_system_reports_under_another_name_is_not_missed(tmp_path: Path) -> None:
    """macOS reports paths as they are on disk; the settings may have other letters in them."""
    (tmp_path / "libraries" / "a").mkdir(parents=True)
    folders = Directories(str(tmp_path)).scan()
    root = tmp_path.resolve() / "libraries"
    assert folders.containing([f"{root}/a/x.md", f"{root}/b"]) == {f"{root}/a", f"{root}/b"}
    assert folders.containing([str(root)]) == set()
    assert folders.containing([f"{root}/a/x.md", f"{root.parent}/LIBRARIES/a/x.md"]) is None


async def test_after_many_changes_the_libraries_match_the_disk(tmp_path: Path) -> None:
    """3,000 changes without a pause: in place, by rename, in two writes, and by delete and re-create."""
    folders = [write(tmp_path, f"lib_{number:02}", count=20) for number in range(50)]
    notified_at: list[float] = []
    async with running_service(tmp_path) as service:
        service.subscribe(lambda: notified_at.append(asyncio.get_running_loop().time()))
        await names(service)
        for turn in range(3):
            for folder in folders:
                for number in range(20):
                    save(folder / "prompts" / f"p{number}.md", f"{folder.name} {number} {turn}\n", number)
            await asyncio.sleep(0)
        extra = write(tmp_path, "new", count=1, text="new\n")
        folders[0].rename(tmp_path / "away")

        async def matches_disk() -> bool:
            try:
                texts = [
                    await service.render(f"{folder.name}:p{number}", {}) == f"{folder.name} {number} 2\n"
                    for folder in folders[1:]
                    for number in range(20)
                ]
                new = await service.render("new:p0", {})
            except LibraryPromptNotFound:
                return False
            return all(texts) and new == "new\n" and "lib_00:p0" not in await names(service)

        await until(matches_disk)
        assert extra.is_dir()
    assert notified_at
    assert all(after - before >= 0.5 for before, after in pairwise(notified_at))


def save(file: Path, text: str, number: int) -> None:
    """Write a file in one of the ways that editors and checkouts use."""
    if number % 4 == 0:
        temporary = file.with_suffix(".tmp")
        temporary.write_text(text)
        temporary.replace(file)
    elif number % 4 == 1:
        with file.open("w") as stream:
            stream.write(text[:4])
            stream.flush()
            stream.write(text[4:])
    elif number % 4 == 2:
        file.unlink()
        file.write_text(text)
    else:
        file.write_text(text)


async def test_a_library_beyond_the_size_limit_is_skipped_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        folder = tmp_path / "libraries" / name
        folder.mkdir(parents=True)
        (folder / "p.md").write_text("Words\n" * 10)
    monkeypatch.setattr(indexer, "_MAX_PROMPT_CHARS", 100)
    async with running_service(tmp_path, start=False) as service:
        await service.load()
        assert service._indexer is not None
        # The result is the same on every refresh.
        for _ in range(2):
            await service._indexer.refresh(None)
            assert await names(service) == ["a:p"]
            _, left_out = await service.reports()
            assert [problem.message for problem in left_out.problems] == [
                "skipped: all libraries together have more than 64 MiB of prompts"
            ]


async def test_the_reports_follow_links_that_break_and_are_repaired(tmp_path: Path) -> None:
    """The web UI shows the reports, and reads them again when the stamp has changed."""
    write(tmp_path, "good")
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "libraries" / "link"
    link.symlink_to(tmp_path / "elsewhere")

    def reported(count: int) -> Callable[[], Awaitable[bool]]:
        async def matches() -> bool:
            problems = [item.message for report in await service.reports() for item in report.problems]
            return problems == ["a link to a folder that does not exist"] * count

        return matches

    async with running_service(tmp_path) as service:
        await names(service)
        await until(reported(0))
        stamp = service.stamp()
        link.unlink()
        link.symlink_to(tmp_path / "nowhere")
        await until(reported(1))

        async def has_new_stamp() -> bool:
            return service.stamp() != stamp

        await until(has_new_stamp)
        link.unlink()
        await until(reported(0))


async def test_folders_beyond_the_maximum_number_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library_folders, "MAX_LIBRARIES", 2)
    for name in "abc":
        write(tmp_path, name)
    async with running_service(tmp_path) as service:
        assert {report.name for report in await service.reports() if report.prompts} == {"a", "b"}
        (problem,) = [problem for report in await service.reports() for problem in report.problems]
        assert problem.message == "only the first 2 of its 3 folders are read"
