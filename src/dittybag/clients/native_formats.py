"""Prompts in the formats of clients: commands, prompt files and skills.

Text must reach the model unchanged. What a client would replace, run or include is escaped, or else the
prompt is not written for this client.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dittybag.clients.native_reading import model_text, typed_arguments
from dittybag.clients.native_text import NativeText, NotPublishable, PublishedPrompt, header, quoted, seal

_ROLES: Final = "all messages are one text, in which lines such as `--role user` begin a message"
_HEADER: Final = "the model also gets the first line, which says where the file comes from"
_TYPED: Final = (
    "{} has no syntax for {}: the text says which variables to replace, and the model replaces them"
)
_ABSENT: Final = "an optional argument that is not given stays in the text as its placeholder"
_INPUT: Final = "VS Code hands `${{input:{}}}` to the model, which asks for the value"


def write_prompt(target: str, prompt: PublishedPrompt) -> NativeText:
    """Return a prompt in the format of a target. Raises `NotPublishable`."""
    native = _WRITERS[target](prompt)
    if (
        target not in _WITH_ARGUMENTS
        or prompt.parts is None
        or len(prompt.arguments) > _WITH_ARGUMENTS[target]
    ):
        return native
    # Placeholders beside other text can be read as something else, so this is tried.
    names = tuple(argument.name for argument in prompt.arguments)
    values = {name: f"<{index}>" for index, name in enumerate(names)}
    expected = "".join(part if isinstance(part, str) else f"<{part}>" for part in prompt.parts)
    typed = typed_arguments(target, names, values)
    is_used = any(isinstance(part, int) for part in prompt.parts)
    if model_text(target, native.text, typed if is_used else "", values, "") != expected:
        raise NotPublishable("its text and its arguments cannot be told apart in this format")
    return native


def claude_code(prompt: PublishedPrompt) -> NativeText:
    """A command of Claude Code."""
    single = len(prompt.arguments) == 1

    def escape(text: str) -> str:
        _refuse(
            text, "Claude Code", {"!`": "run as a command", "```!": "run as commands", "${CLAUDE_": "replace"}
        )
        if re.search(r"\\\$(?=\d|ARGUMENTS)", text):
            raise NotPublishable("Claude Code cannot express a backslash before $ and a digit or ARGUMENTS")
        return re.sub(r"\$(?=\d|ARGUMENTS)", r"\\$", text)

    body = _join(
        prompt, escape, lambda index: "$ARGUMENTS" if single else f"$ARGUMENTS[{index}]", "Claude Code"
    )
    fields = {"description": prompt.description} | _hint(prompt)
    absent = not single and any(not argument.required for argument in prompt.arguments)
    return NativeText(_markdown(prompt, fields, body), _differences(prompt, _ABSENT if absent else ""))


def vscode(prompt: PublishedPrompt) -> NativeText:
    """A prompt file of VS Code."""

    def escape(text: str) -> str:
        _refuse(text, "VS Code", {"${input:": "ask for a value"})
        return text

    body = _join(prompt, escape, lambda index: f"${{input:{prompt.arguments[index].name}}}", "VS Code")
    fields = {"description": prompt.description} | _hint(prompt)
    asked = _INPUT.format(prompt.arguments[0].name) if prompt.arguments else ""
    return NativeText(_markdown(prompt, fields, body), _differences(prompt, asked))


def gemini(prompt: PublishedPrompt) -> NativeText:
    """A command of Gemini CLI."""

    def escape(text: str) -> str:
        active = {"!{": "run as a command", "@{": "replace by a file", "{{args}}": "replace"}
        _refuse(text, "Gemini CLI", active)
        return text

    if len(prompt.arguments) > 1:
        body, difference = escape(prompt.plain), _TYPED.format("Gemini CLI", "several arguments")
    else:
        body, difference = _join(prompt, escape, lambda index: "{{args}}", "Gemini CLI"), ""
        if re.search(r"[!@]\{\{args", body):
            raise NotPublishable("Gemini CLI cannot express an argument after ! or @")
    lines = (
        f"# {header(prompt.origin)}",
        f"description = {quoted(prompt.description)}",
        f'prompt = """\n{_toml_text(body)}"""\n',
    )
    return NativeText(seal("\n".join(lines)), _differences(prompt, difference))


def cursor(prompt: PublishedPrompt) -> NativeText:
    """A command of Cursor."""
    text = f"<!-- {header(prompt.origin)} -->\n{prompt.plain}"
    typed = _TYPED.format("Cursor", "arguments") if prompt.arguments else ""
    return NativeText(seal(text), _differences(prompt, _HEADER, typed))


def skill(prompt: PublishedPrompt) -> NativeText:
    """A skill, which Codex and others read."""
    fields = {"name": prompt.skill_name, "description": prompt.description}
    typed = _TYPED.format("A skill", "arguments") if prompt.arguments else ""
    return NativeText(_markdown(prompt, fields, f"\n{prompt.plain}"), _differences(prompt, typed))


def section(prompt: PublishedPrompt) -> NativeText:
    """A section of AGENTS.md, between two comments."""
    if "<!-- dittybag:" in prompt.plain:
        raise NotPublishable("its text contains a mark of a published section")
    begin = f"<!-- dittybag:begin {prompt.name}. {header(prompt.origin)} -->"
    text = f"{begin}\n{prompt.plain}\n<!-- dittybag:end {prompt.name} -->\n"
    typed = _TYPED.format("AGENTS.md", "arguments") if prompt.arguments else ""
    marks = "the model also gets the two comments around the text"
    return NativeText(seal(text), _differences(prompt, marks, typed))


def mark_skill(text: str, origin: str) -> str:
    """Put the header into the `SKILL.md` of a library."""
    fence, newline, rest = text.partition("\n")
    if fence.rstrip("\r") != "---":
        raise NotPublishable("its SKILL.md does not begin with ---")
    return seal(f"{fence}{newline}# {header(origin)}\n{rest}")


def _differences(prompt: PublishedPrompt, *others: str) -> tuple[str, ...]:
    return tuple(filter(None, (_ROLES if prompt.has_roles else "", *others)))


def _hint(prompt: PublishedPrompt) -> dict[str, str]:
    if not prompt.arguments:
        return {}
    return {"argument-hint": " ".join(f"[{argument.name}]" for argument in prompt.arguments)}


def _markdown(prompt: PublishedPrompt, fields: dict[str, str], body: str) -> str:
    lines = [f"# {header(prompt.origin)}", *(f"{name}: {quoted(value)}" for name, value in fields.items())]
    return seal("---\n" + "".join(f"{line}\n" for line in lines) + f"---\n{body}")


def _join(
    prompt: PublishedPrompt, escape: Callable[[str], str], argument: Callable[[int], str], client: str
) -> str:
    """Return the text with the client's placeholders."""
    if prompt.parts is None:
        raise NotPublishable(
            f"its template has statements or filters, and a file of {client} can only insert values"
        )
    return "".join(escape(part) if isinstance(part, str) else argument(part) for part in prompt.parts)


def _refuse(text: str, client: str, active: dict[str, str]) -> None:
    for sign, action in active.items():
        if sign in text:
            raise NotPublishable(f"its text contains {sign}, which {client} would {action}")


def _toml_text(text: str) -> str:
    """Return a text for a TOML string in three double quotes."""
    text = text.replace("\\", "\\\\").replace('"', '\\"')
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", text)


_WRITERS: Final[dict[str, Callable[[PublishedPrompt], NativeText]]] = {
    "claude-code": claude_code,
    "codex": skill,
    "cursor": cursor,
    "gemini": gemini,
    "vscode": vscode,
    "agents-md": section,
}
#: The formats that have arguments, and how many of them.
_WITH_ARGUMENTS: Final = {"claude-code": 100, "gemini": 1, "vscode": 100}
