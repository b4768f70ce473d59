"""The skills of all libraries: their front matter, their files with digests, and the content of files.

Everything is read when it is asked for, and again when the stamp of a file has changed, so that an entry
describes the files as they are. Reading and hashing happen in a thread, parsing in a child process.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.libraries import FileProblem
from dittybag.domain.mime_types import guess_mime_type
from dittybag.domain.skills import (
    FILE_BYTES,
    MAX_TOTAL_BYTES,
    SKILL_FILE,
    Skill,
    SkillFile,
    front_matter_problem,
    size_problem,
)
from dittybag.library.catalogue import LoadedLibrary
from dittybag.library.disk_thread import DiskThread
from dittybag.library.formats.skill_header import InvalidHeader
from dittybag.library.safe_folder import MissingFile, SafeFolder, Stamp, UnreadableFile, decode_text
from dittybag.library.skill_folders import ServedPaths, assign_paths, files_by_skill

#: How often a file is read again that changes while it is read.
_ATTEMPTS: Final = 3
#: Maximum total size of the files that one call hashes; then it returns what it has.
_HASHED_BYTES: Final = 4 * MAX_TOTAL_BYTES

#: Parses the front matter of a `SKILL.md`. Raises `InvalidHeader`.
HeaderReader = Callable[[str], Awaitable[dict[str, Any]]]


class _Header(Struct, frozen=True):
    """The front matter of a `SKILL.md`, or why the skill is not served, and the file that it is from."""

    stamp: Stamp
    file: SkillFile | None = None
    fields: dict[str, Any] = {}
    problem: str | None = None


class _LibrarySkills:
    """What is known about the skills of one library."""

    def __init__(self, library: LoadedLibrary, old: _LibrarySkills | None) -> None:
        self.library = library
        self.root: SafeFolder = library.folder.root
        self.files = files_by_skill(library.skill_files)
        #: Why skills are too large to be served, by folder.
        self._size_problems = {
            folder: problem
            for folder, files in self.files.items()
            if (problem := size_problem(library.skill_files[file][1] for file in files)) is not None
        }
        #: By folder.
        self.headers: dict[str, _Header] = {}
        #: By file.
        self.hashes: dict[str, tuple[Stamp, SkillFile]] = {}
        if old is not None and old.root == self.root:
            self.headers = {folder: item for folder, item in old.headers.items() if folder in self.files}
            # A copy, because the thread may add some.
            hashes = old.hashes.copy()
            self.hashes = {file: item for file, item in hashes.items() if file in library.skill_files}
        #: Whether all files of a skill could be read, by folder.
        self.readable: dict[str, bool] = {}
        self.served = ServedPaths({}, {})
        self._assigned: Mapping[str, str] | None = None

    def head(self, folder: str) -> str:
        return f"{folder}/{SKILL_FILE}" if folder else SKILL_FILE

    def set_header(self, folder: str, header: _Header) -> None:
        """Set the front matter of a skill. The skill is not served if it does not conform."""
        problem = header.problem or front_matter_problem(header.fields)
        self.headers[folder] = _Header(header.stamp, header.file, header.fields, problem)

    def assign_paths(self) -> None:
        """Assign the paths, if names have changed."""
        names = {
            folder: str(header.fields["name"])
            for folder, header in self.headers.items()
            if header.problem is None and folder not in self._size_problems
        }
        if names != self._assigned:
            self._assigned = names
            self.served = assign_paths(self.library.name, names)

    def innermost(self, path: str) -> str | None:
        """The path of the innermost skill at a path or around it; None if there is none."""
        while path and path not in self.served.folders:
            path = path.rpartition("/")[0]
        return path or None

    def stamps(self) -> dict[str, Stamp | None]:
        """The stamp of each `SKILL.md`, by folder; None if it was removed. Touches the disk."""
        return {folder: self.root.unlinked_stamp(self.head(folder)) for folder in self.files}

    def hashed_files(self, folder: str) -> Iterator[SkillFile]:
        """The files of a skill with their digests. Touches the disk. Raises `UnreadableFile`."""
        for file in self.files[folder]:
            inside = file[len(folder) :].lstrip("/")
            stamp = self.root.unlinked_stamp(file)
            if stamp is None:
                # It was removed after the last scan.
                continue
            known = self.hashes.get(file)
            if known is None or known[0] != stamp:
                try:
                    known = self.hashes[file] = read_file(self.root, file)[:2]
                except MissingFile:
                    continue
            yield replace(known[1], path=inside)

    def paths_of(self, file: str) -> list[str]:
        """The paths at which a file is served."""
        return [
            f"{path}/{file[len(folder) :].lstrip('/')}"
            for path, folder in self.served.folders.items()
            if not folder or file.startswith(f"{folder}/")
        ]

    def problems(self) -> Iterator[FileProblem]:
        """Why skills of this library are not served."""
        reasons = {folder: header.problem for folder, header in self.headers.items() if header.problem}
        for folder, reason in sorted((self._size_problems | reasons | self.served.problems).items()):
            yield self.problem(folder, reason)

    def problem(self, folder: str, reason: str) -> FileProblem:
        return FileProblem(self.head(folder), f"not offered to clients as a skill: {reason}", level="warning")


def read_file(root: SafeFolder, file: str) -> tuple[Stamp, SkillFile, bytes]:
    """A file of a skill: its stamp, its digest and its content. Raises `UnreadableFile`."""
    from hashlib import sha256

    for attempt in range(_ATTEMPTS):
        stamp, content = root.read(file, FILE_BYTES, follow_links=False)
        if attempt + 1 == _ATTEMPTS or (root.unlinked_stamp(file) == stamp and len(content) == stamp[1]):
            break
    kind = guess_mime_type(file, content)
    return stamp, SkillFile(file, sha256(content).hexdigest(), len(content), kind, stamp[0] // 1000), content


class SkillIndex:
    """The skills of libraries, by path."""

    def __init__(self, read_header: HeaderReader) -> None:
        self._read_header = read_header
        # A separate thread, so that prompts do not wait for the digests of large skills.
        self._disk = DiskThread()
        #: By library name.
        self._known: dict[str, _LibrarySkills] = {}

    def close(self) -> None:
        self._disk.close()

    async def page(
        self, libraries: Mapping[str, LoadedLibrary], after: str, limit: int
    ) -> tuple[list[Skill], bool]:
        """Skills by path, starting after `after`, and whether there are more."""
        first, found, hashed = after.partition("/")[0], list[Skill](), 0
        for name in sorted(library for library in libraries if library >= first):
            skills = await self._load(libraries[name])
            for path in sorted(path for path in skills.served.folders if path > after):
                if len(found) == limit or hashed > _HASHED_BYTES:
                    return found, True
                if (skill := await self._skill(skills, path)) is not None:
                    found.append(skill)
                    hashed += sum(file.size for file in skill.files)
        return found, False

    async def around(self, libraries: Mapping[str, LoadedLibrary], path: str) -> Skill | None:
        """The innermost skill at a path or around it."""
        found = await self._around(libraries, path)
        return None if found is None else await self._skill(*found)

    async def of_file(self, library: LoadedLibrary, file: str) -> Skill | None:
        """The skill whose `SKILL.md` a file is; None if it is another file."""
        folder, _, name = file.rpartition("/")
        if name != SKILL_FILE:
            return None
        skills = await self._load(library)
        path = next((path for path, served in skills.served.folders.items() if served == folder), None)
        return None if path is None else await self._skill(skills, path)

    async def read(self, libraries: Mapping[str, LoadedLibrary], path: str) -> tuple[SkillFile, bytes] | None:
        """A file at a path, and its content; None if there is none."""
        found = await self._around(libraries, path)
        if found is None:
            return None
        skills, root = found
        folder = skills.served.folders[root]
        inside = path[len(root) + 1 :]
        file = f"{folder}/{inside}" if folder else inside
        if file not in skills.files[folder] or not await self._is_readable(skills, root, folder):
            return None
        try:
            _, described, content = await self._disk.run(lambda: read_file(skills.root, file))
        except UnreadableFile:
            return None
        return described, content

    async def _is_readable(self, skills: _LibrarySkills, path: str, folder: str) -> bool:
        """Whether all files of a skill could be read when its entry was made last."""
        if folder not in skills.readable:
            await self._skill(skills, path)
        return skills.readable.get(folder, False)

    async def _around(
        self, libraries: Mapping[str, LoadedLibrary], path: str
    ) -> tuple[_LibrarySkills, str] | None:
        """The skills of a library, and the path of the innermost one at a path or around it."""
        library = libraries.get(path.partition("/")[0])
        if library is None:
            return None
        skills = self._known.get(library.name)
        if skills is None or skills.library is not library or not await self._is_current(skills, path):
            skills = await self._load(library)
        root = skills.innermost(path)
        return None if root is None else (skills, root)

    async def _is_current(self, skills: _LibrarySkills, path: str) -> bool:
        """Whether the front matter of the skill at a path or around it is that of its file."""
        root = skills.innermost(path)
        if root is None:
            return False
        folder = skills.served.folders[root]
        stamp = await self._disk.run(lambda: skills.root.unlinked_stamp(skills.head(folder)))
        header = skills.headers.get(folder)
        return stamp is not None and header is not None and header.stamp == stamp

    async def problems(self, library: LoadedLibrary) -> list[FileProblem]:
        """Why skills of a library are not served."""
        skills = await self._load(library)
        found = list(skills.problems())
        for folder in list(skills.served.folders.values()):
            try:
                await self._disk.run(lambda: list(skills.hashed_files(folder)))  # noqa: B023  # awaited
            except UnreadableFile as error:
                found.append(skills.problem(folder, f"one of its files cannot be read: {error.problem}"))
        return found

    async def changed_paths(
        self, libraries: Mapping[str, LoadedLibrary], files: Iterable[tuple[str, str]]
    ) -> set[str]:
        """The paths of changed files, before and after the change. `files`: pairs of library and file."""
        changed = sorted(files)
        names = {name for name, _ in changed}
        before = {name: self._known[name] for name in names if name in self._known}
        after = {name: await self._load(libraries[name]) for name in names if name in libraries}
        self._known = {name: skills for name, skills in self._known.items() if name in libraries}
        return {
            path
            for known in (before, after)
            for name, file in changed
            if name in known
            for path in known[name].paths_of(file)
        }

    async def _load(self, library: LoadedLibrary) -> _LibrarySkills:
        """The skills of a library, after reading what has changed."""
        skills = self._known.get(library.name)
        if skills is None or skills.library is not library:
            skills = self._known[library.name] = _LibrarySkills(library, skills)
        if skills.files:
            for folder, stamp in (await self._disk.run(skills.stamps)).items():
                known = skills.headers.get(folder)
                if stamp is None:
                    skills.headers.pop(folder, None)
                elif known is None or known.stamp != stamp:
                    skills.set_header(folder, await self._header(skills, folder, stamp))
            skills.assign_paths()
        return skills

    async def _header(self, skills: _LibrarySkills, folder: str, stamp: Stamp) -> _Header:
        head = skills.head(folder)
        try:
            stamp, described, content = await self._disk.run(lambda: read_file(skills.root, head))
            skills.hashes[head] = stamp, described
            if content.startswith(BOM_UTF8):
                # It is part of the text that clients get, so that does not begin with front matter.
                return _Header(stamp, problem="it begins with a byte order mark; save it without one")
            return _Header(stamp, described, await self._read_header(decode_text(content)))
        except (UnreadableFile, InvalidHeader) as error:
            problem = error.problem if isinstance(error, UnreadableFile) else str(error)
            return _Header(stamp, problem=problem)

    async def _skill(self, skills: _LibrarySkills, path: str) -> Skill | None:
        """The skill at a path with its files; None if it cannot be read, or changes all the time."""
        for _ in range(_ATTEMPTS):
            folder = skills.served.folders.get(path)
            header = None if folder is None else skills.headers.get(folder)
            if folder is None or header is None or header.file is None:
                return None
            try:
                files = tuple(await self._disk.run(lambda: list(skills.hashed_files(folder))))  # noqa: B023  # awaited
            except UnreadableFile:
                skills.readable[folder] = False
                return None
            skills.readable[folder] = True
            if any(file.path == SKILL_FILE and file.sha256 == header.file.sha256 for file in files):
                return Skill(path=path, front_matter=header.fields, files=files)
            # It was changed after its front matter was read.
            await self._load(skills.library)
        return None
