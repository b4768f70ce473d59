"""What the model of a client gets from a prompt, by the table of facts about clients."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from dittybag.assembly.publishing import PublishableItem, find_item
from dittybag.clients.client_facts import CLIENT_FACTS, ClientFacts
from dittybag.clients.native_formats import write_prompt
from dittybag.clients.native_reading import model_text, split_arguments, typed_arguments
from dittybag.clients.native_text import NotPublishable, PublishedPrompt
from dittybag.clients.publishing_targets import TARGETS
from dittybag.domain.role_marks import Message, with_role_lines
from dittybag.domain.skills import SKILL_FILE
from dittybag.domain.token_estimate import estimate_tokens
from dittybag.services.prompt_service import PromptAddress

if TYPE_CHECKING:
    from dittybag.assembly.workspace_session import LibrarySession

#: How a prompt reaches a model: over MCP, as a published file or skill, or as the result of a tool.
Face = Literal["prompt", "file", "tool"]
FACES: Final[tuple[Face, ...]] = ("prompt", "file", "tool")
_SERVER: Final = "dittybag"
_JSON: Final = "the model gets the first message, as a JSON string"


class ClientPreview(Struct, frozen=True, kw_only=True):
    """A prompt as a client hands it to its model."""

    client: str
    face: Face
    #: The name in the client, and what the user types; `None` if it is unknown.
    shown_as: str | None
    typed: str | None
    #: The arguments as the client splits them.
    arguments: list[str] | dict[str, str]
    text: str
    tokens: int
    #: Where the client cuts the text; `None` if it does not, or no limit is known.
    cut: str | None
    #: How the text differs from the rendered prompt.
    differences: list[str]


async def preview_prompt(
    session: LibrarySession, client: str, name: str, values: Mapping[str, str], face: Face | None
) -> ClientPreview:
    """Render a prompt for a client. Raises `NotPublishable` and the errors of prompts."""
    facts = CLIENT_FACTS[client]
    if ":" in name:
        _, messages = await session.templates.render_library_messages(name, values)
        arguments = (await session.templates.find_library_prompt(name)).arguments
    else:
        prompt = await session.session.workspace.prompts.get(session.session.caller, PromptAddress(any=name))
        messages = await session.templates.render_messages(prompt, values)
        name, arguments = prompt.name, prompt.arguments
    names = tuple(argument.name for argument in arguments)
    chosen = face or _usual_face(facts, len(names))
    if chosen == "file":
        return _of_file(facts, (await find_item(session, name)), names, values)
    if chosen == "tool":
        return _of_tool(facts, name, messages, values)
    return _of_prompt(facts, name, names, messages, values)


def _usual_face(facts: ClientFacts, arguments: int) -> Face:
    is_listed = facts.prompt_name.arguments != "one" or arguments < 2
    if facts.prompts.value == "yes" and is_listed:
        return "prompt"
    return "file" if facts.name in TARGETS else "tool"


def _of_prompt(
    facts: ClientFacts,
    name: str,
    names: Sequence[str],
    messages: Sequence[Message],
    values: Mapping[str, str],
) -> ClientPreview:
    if facts.prompts.value == "no":
        raise NotPublishable(f"{facts.title} shows no MCP prompts; use --face file or --face tool")
    how = facts.prompt_name
    shown = how.pattern.format(server=_SERVER, prompt=name) if how.pattern else None
    given = {key: values[key] for key in names if key in values}
    typed = None if shown is None else _typed(shown, how.arguments, names, given)
    # MCP has no role for system messages.
    text = with_role_lines([message._replace(role=_MCP_ROLES[message.role]) for message in messages])
    differences = []
    if any(message.role == "system" for message in messages):
        differences.append("messages of the system are messages of the user: MCP has no such role")
    if facts.name == "gemini":
        text = json.dumps(messages[0].text, ensure_ascii=False)
        differences.append(_JSON)
    if how.arguments == "one" and len(names) > 1:
        differences.append(how.note)
    return _preview(facts, "prompt", text, shown=shown, typed=typed, arguments=given, differences=differences)


_MCP_ROLES: Final = {"system": "user", "user": "user", "assistant": "assistant"}


def _typed(shown: str, how: str, names: Sequence[str], given: Mapping[str, str]) -> str:
    if how == "named":
        return " ".join((shown, *(f"--{name}={json.dumps(value)}" for name, value in given.items())))
    if how == "words":
        last = max((index for index, name in enumerate(names) if name in given), default=-1)
        return " ".join((shown, *(_word(given.get(name, "")) for name in names[: last + 1])))
    return " ".join((shown, *given.values())) if how == "one" else shown


def _word(value: str) -> str:
    """Return a value as one word: in quotes unless it is plain."""
    return value if value == shlex.quote(value) else json.dumps(value, ensure_ascii=False)


def _of_file(
    facts: ClientFacts, item: PublishableItem, names: tuple[str, ...], values: Mapping[str, str]
) -> ClientPreview:
    target = TARGETS.get(facts.name)
    if target is None:
        raise NotPublishable(f"dittybag publish does not write files of {facts.title}")
    if item.prompt is None:
        text = item.skill_files[SKILL_FILE].decode()
        return _preview(facts, "file", text, shown=target.command.format(item.skill_name))
    prompt: PublishedPrompt = item.prompt
    native = write_prompt(target.name, prompt)
    stem = prompt.skill_name if target.has_skill_names else prompt.name
    typed = typed_arguments(target.name, names, values)
    text = model_text(target.name, native.text, typed, values, stem)
    shown = target.command.format(stem)
    found = split_arguments(target.name, typed)
    return _preview(
        facts,
        "file",
        text,
        shown=shown,
        typed=f"{shown} {typed}".strip(),
        arguments=found,
        differences=native.differences,
    )


def _of_tool(
    facts: ClientFacts, name: str, messages: Sequence[Message], values: Mapping[str, str]
) -> ClientPreview:
    text, cut, limit = with_role_lines(messages), None, facts.result_limit
    size = estimate_tokens(text) if limit.unit == "tokens" else len(text)
    if limit.amount is not None and size > limit.amount:
        cut = f"at {limit.amount:,} {limit.unit}: {limit.note}"
    return _preview(facts, "tool", text, shown="use_prompt", arguments={"name": name, **values}, cut=cut)


def _preview(
    facts: ClientFacts,
    face: Face,
    text: str,
    *,
    shown: str | None,
    typed: str | None = None,
    arguments: Sequence[str] | Mapping[str, str] = (),
    cut: str | None = None,
    differences: Sequence[str] = (),
) -> ClientPreview:
    return ClientPreview(
        client=facts.name,
        face=face,
        shown_as=shown or None,
        typed=typed,
        arguments=dict(arguments) if isinstance(arguments, Mapping) else list(arguments),
        text=text,
        tokens=estimate_tokens(text),
        cut=cut,
        differences=list(differences),
    )
