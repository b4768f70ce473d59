"""Publishing: prompts and skills of a session as files of clients."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from dittybag.clients.native_formats import mark_skill, write_prompt
from dittybag.clients.native_text import NativeText, NotPublishable, PublishedArgument, PublishedPrompt
from dittybag.clients.publishing import FileOutcome, PublishedFile, follow, publish, unpublish
from dittybag.clients.publishing_records import PublishingRecords, PublishingSource
from dittybag.clients.publishing_targets import PublishingTarget
from dittybag.domain.role_marks import Message, has_roles, with_role_lines
from dittybag.domain.skill_texts import skill_description, skill_name, template_instructions
from dittybag.domain.skills import SKILL_FILE, Skill
from dittybag.services.prompt_service import PromptAddress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dittybag.assembly.workspace_session import LibrarySession
    from dittybag.domain.prompts import Argument

_OTHERS: Final = r"[^A-Za-z0-9._-]+"
_MAX_FILE_NAME: Final = 100
#: Stands for the value of an argument while a template is rendered: private characters around its index.
_MARK: Final = re.compile("\ue000(\\d+)\ue001")


class PublishableItem(Struct, frozen=True, kw_only=True):
    """A prompt, or a skill of a library with its files."""

    name: str
    prompt: PublishedPrompt | None = None
    skill_name: str = ""
    skill_files: Mapping[str, bytes] = {}


class Publication(Struct, frozen=True):
    """What publishing or removing a prompt did."""

    name: str
    outcomes: tuple[FileOutcome, ...]
    differences: tuple[str, ...] = ()


class PublishingPlace(Struct, frozen=True):
    """A target in the folder of a project, or of the user."""

    target: PublishingTarget
    #: With symbolic links resolved.
    root: Path
    home: str
    is_user: bool

    def publish(self, item: PublishableItem, database: str, project: int, *, dry_run: bool) -> Publication:
        """Write the files of an item of a project. Raises `NotPublishable` and `ClientFileError`."""
        wanted, differences = self._files(item)
        source = PublishingSource(
            database=database, project=project, root=str(self.root), is_user=self.is_user
        )
        outcomes = publish(
            self.target.name,
            item.name,
            self.root,
            wanted,
            PublishingRecords(self.home),
            source=source,
            dry_run=dry_run,
        )
        return Publication(item.name, tuple(outcomes), differences)

    def follow(
        self, item: PublishableItem, source: PublishingSource, records: PublishingRecords, *, dry_run: bool
    ) -> list[FileOutcome]:
        """Update the files of an item that was published before. See `follow` of `clients.publishing`."""
        wanted, _ = self._files(item)
        return follow(self.target.name, item.name, wanted, records, source, dry_run=dry_run)

    def remove(self, name: str, *, dry_run: bool) -> Publication:
        """Remove the files of an item, which may no longer exist. Raises `ClientFileError`."""
        names = {file_name(name)} if not self.target.has_skill_names else {skill_name(name, "")}
        expected = [self._prompt_file(stem, b"") for stem in names if self._prompt_path(stem) is not None]
        records = PublishingRecords(self.home)
        outcomes = unpublish(self.target.name, name, self.root, expected, records, dry_run=dry_run)
        changed = [outcome for outcome in outcomes if outcome.state != "absent"]
        return Publication(name, tuple(changed or outcomes[:1]))

    def native_text(self, prompt: PublishedPrompt) -> NativeText:
        """Return a prompt as the text of its file. Raises `NotPublishable`."""
        return write_prompt(self.target.name, prompt)

    def _files(self, item: PublishableItem) -> tuple[list[PublishedFile], tuple[str, ...]]:
        if item.prompt is not None:
            native = self.native_text(item.prompt)
            stem = item.prompt.skill_name if self.target.has_skill_names else item.prompt.name
            return [self._prompt_file(stem, native.text.encode())], native.differences
        folder = self.target.user_skills if self.is_user else self.target.project_skills
        if folder is None:
            raise NotPublishable(f"{self.target.title} has no folder for skills here")
        base = self.root / folder / item.skill_name
        return [PublishedFile(base / path, data) for path, data in item.skill_files.items()], ()

    def _prompt_path(self, stem: str) -> Path | None:
        pattern = self.target.user_file if self.is_user else self.target.project_file
        return None if pattern is None else self.root / pattern.format(stem)

    def _prompt_file(self, stem: str, data: bytes) -> PublishedFile:
        path = self._prompt_path(stem)
        if path is None:
            raise NotPublishable(f"{self.target.title} has no file of the user")
        return PublishedFile(path, data, stem if self.target.is_section else "")


def file_name(name: str) -> str:
    """Return the name of a file for a prompt, which may be one of a library."""
    return re.sub(_OTHERS, "-", name).strip(".-")[:_MAX_FILE_NAME] or "prompt"


async def find_item(session: LibrarySession, name: str) -> PublishableItem:
    """Return a prompt or skill by its name. Raises `NotPublishable` and the errors of prompts."""
    if ":" not in name:
        return await _stored_item(session, name)
    skill = await session.libraries.skill_of(name)
    if skill is not None:
        return await _skill_item(session, name, skill)
    prompt, _, source = await session.libraries.source(name)

    async def render(values: Mapping[str, str]) -> Sequence[Message]:
        return (await session.templates.render_library_messages(name, values))[1]

    parts, roles = await _parts(source, prompt.arguments, render)
    if parts is None:
        raise NotPublishable("its template has statements or filters; use it as a prompt over MCP")
    shown = (part if isinstance(part, str) else f"{{{{ {prompt.arguments[part].name} }}}}" for part in parts)
    plain = template_instructions(prompt.arguments) + "".join(shown)
    published = _published(
        name, "", f"the prompt {name} of a library", (prompt.title, prompt.description), prompt.arguments
    )
    return PublishableItem(name=name, prompt=published(parts, plain, roles))


async def _stored_item(session: LibrarySession, name: str) -> PublishableItem:
    workspace, caller = session.session.workspace, session.session.caller
    prompt = await workspace.prompts.get(caller, PromptAddress(any=name))
    project = await workspace.projects.of_caller(caller)

    async def render(values: Mapping[str, str]) -> Sequence[Message]:
        return await session.templates.render_messages(prompt, values)

    parts, roles = await _parts(prompt.content, prompt.arguments, render)
    origin = f"the prompt {prompt.name} of the project {project.name}"
    published = _published(
        prompt.name, prompt.id, origin, (prompt.title, prompt.description), prompt.arguments
    )
    plain = template_instructions(prompt.arguments) + prompt.content
    return PublishableItem(name=prompt.name, prompt=published(parts, plain, roles))


def _published(
    name: str,
    id: str,
    origin: str,
    texts: tuple[str | None, str | None],
    arguments: Sequence[Argument],
) -> Callable[[tuple[str | int, ...] | None, str, bool], PublishedPrompt]:
    return lambda parts, plain, roles: PublishedPrompt(
        name=file_name(name),
        skill_name=skill_name(name, id),
        origin=origin,
        description=skill_description(name, *texts),
        arguments=tuple(PublishedArgument(item.name, item.required) for item in arguments),
        parts=parts,
        plain=plain,
        has_roles=roles,
    )


async def _parts(
    source: str,
    arguments: Sequence[Argument],
    render: Callable[[Mapping[str, str]], Awaitable[Sequence[Message]]],
) -> tuple[tuple[str | int, ...] | None, bool]:
    """Return a text with the indexes of arguments in their places, and whether it has roles.

    The text is `None` if the template does more than insert the values of arguments.
    """
    if arguments:
        names = "|".join(re.escape(argument.name) for argument in arguments)
        others = re.sub(rf"\{{\{{\s*(?:{names})\s*\}}\}}", "", source)
        if re.search(r"\{[{%#]|[\ue000\ue001]", others):
            return None, False
    messages = await render({item.name: f"\ue000{index}\ue001" for index, item in enumerate(arguments)})
    text, roles = with_role_lines(messages), has_roles(messages)
    if not arguments:
        return (text,), roles
    pieces = _MARK.split(text)
    return tuple(int(piece) if index % 2 else piece for index, piece in enumerate(pieces)), roles


async def _skill_item(session: LibrarySession, name: str, skill: Skill) -> PublishableItem:
    contents: dict[str, bytes] = {}
    for file in skill.files:
        found = await session.libraries.read_skill_file(f"{skill.path}/{file.path}")
        if found is None:
            raise NotPublishable(f"its file {file.path} cannot be read")
        contents[file.path] = found[1]
    head = mark_skill(contents[SKILL_FILE].decode(), f"the skill {name} of a library")
    return PublishableItem(
        name=name, skill_name=skill.name, skill_files={**contents, SKILL_FILE: head.encode()}
    )
