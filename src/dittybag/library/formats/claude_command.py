"""Claude Code commands: Markdown with the placeholders `$ARGUMENTS` and `$1`.

`$ARGUMENTS` becomes the argument `arguments`. `$ARGUMENTS[0]` and `$1` become arguments named after the
words of `argument-hint` (`[issue-number] [priority]`), or `arg1` and so on. The names of an `arguments:`
list in the front matter take precedence, and are also replaced as `$name`. `$1` is the first argument, as
in commands; in a text that uses `$0`, `$0` is the first, as in skills. All arguments are optional. If a
command has a hint but no placeholder, its arguments are appended as `ARGUMENTS: ...`, as in Claude Code.

Everything else is kept verbatim, including commands (!`git status`) and `@file` references: they are text,
and nothing is executed. A dollar sign with a digit is often an amount of money or a shell variable, so:
- outside of code, `$N` is an argument if the hint has at least N words or all of `$1` to `$N` occur, and if
  it does not look like an amount (`$10`, `$5.00`, `$5k`, `$3 million`, `$5/month`);
- in inline code, only if the hint has at least N words or the text outside of code uses it; in a fenced
  block, where scripts use their own `$1`, only if the text outside of fenced blocks uses it. After `awk` it
  is never an argument. In code it is kept verbatim if the argument is not given.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.prompts import MAX_ARGUMENTS
from dittybag.library.formats.argument_declarations import DeclaredArgument, build_signature, to_identifier
from dittybag.library.formats.code_spans import CodeSpans
from dittybag.library.formats.escaping import replace_placeholders, string_literal
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.markdown import build_prompt, parse_declared_arguments
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.yaml_nodes import YamlNode, text_of

_COMMAND_FIELDS: Final = ("argument-hint", "allowed-tools", "disable-model-invocation")
_PLACEHOLDER: Final = re.compile(
    r"(?<![\\$])\$(?:ARGUMENTS\[(?P<index>\d{1,2})\]|(?P<all>ARGUMENTS)(?!\w)"
    r"|(?P<digit>\d)(?![\w%]|[.,]\d)|(?P<name>[A-Za-z_]\w*(?:-\w+)*))"
)
_AMOUNT: Final = re.compile(
    r"\s*(?:thousand|million|billion|trillion|dollars?|usd|per|each|an?)\b"
    r"|\s*/\s*(?:seat|user|hour|hr|h|day|week|month|mo|year|yr|call|request|token)s?\b|\+",
    re.IGNORECASE,
)
_EXPRESSION: Final = re.compile(r"\{[{%]([^{}%]{0,200})")
_NAME: Final = re.compile(r"[^\W\d]\w*")
_HINT_WORD: Final = re.compile(r"\[[^\[\]]*\]|<[^<>]*>|\{[^{}]*\}|[^\s\[\]<>{}]+")


class _Hint(Struct, frozen=True):
    """The `argument-hint` of a command."""

    text: str = ""
    words: tuple[str, ...] = ()


def looks_like_command(document: FrontMatterDocument) -> bool:
    """Whether a Markdown file outside of a `commands` folder is a command."""
    return any(field in document.fields for field in _COMMAND_FIELDS) or takes_arguments(document)


def takes_arguments(document: FrontMatterDocument) -> bool:
    """Whether the text has a placeholder `$ARGUMENTS` or `$ARGUMENTS[N]`."""
    return any(found["all"] or found["index"] for found in _PLACEHOLDER.finditer(document.body))


def uses_jinja(document: FrontMatterDocument, diagnostics: Diagnostics) -> bool:
    """Whether the text uses its declared arguments as `{{ name }}` and has no placeholders of commands."""
    names = {
        argument.source_name for argument in parse_declared_arguments(document, Diagnostics(diagnostics.file))
    }
    if not names or takes_arguments(document):
        return False
    if any(found["name"] in names for found in _PLACEHOLDER.finditer(document.body)):
        return False
    expressions = _EXPRESSION.findall(document.body)
    return any(word in names for expression in expressions for word in _NAME.findall(expression))


def parse(document: FrontMatterDocument, diagnostics: Diagnostics) -> ParsedPrompt:
    """Parse a command."""
    text, arguments = _CommandTranslator(document, diagnostics).result()
    found = build_signature(arguments, diagnostics, rename=True)
    prompt = build_prompt(document, diagnostics, found, is_template=bool(arguments))
    return replace(prompt, text=text) if arguments else prompt


class _CommandTranslator:
    """Translates the text of a command to a Jinja template."""

    def __init__(self, document: FrontMatterDocument, diagnostics: Diagnostics) -> None:
        self._body = document.body
        self._hint = _hint(document.fields.get("argument-hint"))
        self._declared = _declared_arguments(document, diagnostics)
        self._code = CodeSpans(self._body)
        self._placeholders = list(_PLACEHOLDER.finditer(self._body))
        prose = {
            int(found["digit"]) for found in self._placeholders if found["digit"] and self._is_prose(found)
        }
        #: The digit of the first argument.
        self._first = 0 if 0 in prose else 1
        #: Indexes of the arguments that are used outside of code.
        self._indexes = {int(found["index"]) for found in self._placeholders if found["index"]}
        self._indexes |= {digit - self._first for digit in prose}
        self._inline = {
            int(found["digit"]) - self._first
            for found in self._placeholders
            if found["digit"] and self._code.kind(found.start()) == "inline"
        }
        self._names: dict[str, str] = {}
        self._arguments: dict[str, DeclaredArgument] = {}
        for argument in self._declared:
            name = self._new_name(argument.source_name)
            self._names[argument.source_name] = name
            self._arguments[name] = replace(argument, source_name=name, required=False)

    def result(self) -> tuple[str, list[DeclaredArgument]]:
        expressions = {found: self._expression(found) for found in self._placeholders}

        def tag(found: re.Match[str]) -> str | None:
            return f"{{{{ {expressions[found]} }}}}" if expressions[found] else None

        text = replace_placeholders(self._body, self._placeholders, tag)
        if not any(expressions.values()) and (self._hint.text or self._declared):
            text += self._append_arguments()
        return text, list(self._arguments.values())

    def _append_arguments(self) -> str:
        """A template that appends all arguments, for a text without placeholders."""
        gap = "\n" if self._body.endswith("\n") else "\n\n"
        if not self._declared:
            name = self._argument("arguments", self._hint.text)
            return f"{{% if {name} %}}{gap}ARGUMENTS: {{{{ {name} }}}}{{% endif %}}"
        names = list(self._arguments)
        lines = "".join(f"{{% if {name} %}}\n{name}: {{{{ {name} }}}}{{% endif %}}" for name in names)
        return f"{{% if {' or '.join(names)} %}}{gap}ARGUMENTS:{lines}{{% endif %}}"

    def _expression(self, found: re.Match[str]) -> str | None:
        """The Jinja expression for a placeholder; None if it is not an argument."""
        if found["all"]:
            return self._argument("arguments", self._hint.text)
        if found["name"]:
            return self._names.get(found["name"])
        if found["index"]:
            return self._positional(int(found["index"]))
        index = int(found["digit"]) - self._first
        if index < 0 or not self._is_declared(index):
            return None
        kind = self._code.kind(found.start())
        if self._is_after_awk(found.start()):
            return None
        if kind is None:
            return None if self._is_amount(found) else self._positional(index)
        if kind == "fenced" and index not in self._indexes | self._inline:
            return None
        return f"{self._positional(index)} or {string_literal(found[0])}"

    def _is_declared(self, index: int) -> bool:
        known = max(len(self._hint.words), len(self._declared))
        return index < known or self._indexes.issuperset(range(index + 1))

    def _is_prose(self, found: re.Match[str]) -> bool:
        at = found.start()
        return self._code.kind(at) is None and not self._is_amount(found) and not self._is_after_awk(at)

    def _is_amount(self, found: re.Match[str]) -> bool:
        before = self._body[found.start() - 1 : found.start()]
        return before.isalnum() or _AMOUNT.match(self._body, found.end()) is not None

    def _is_after_awk(self, at: int) -> bool:
        start = self._body.rfind("\n", 0, at) + 1
        return "awk" in self._body[max(start, at - 1000) : at]

    def _positional(self, index: int) -> str:
        if index < len(self._declared):
            return self._names[self._declared[index].source_name]
        word = self._hint.words[index] if index < len(self._hint.words) else ""
        return self._argument(str(index), word, _word_name(word) or f"arg{index + 1}")

    def _argument(self, slot: str, hint: str, name: str = "arguments") -> str:
        """The name of the argument for a placeholder, which is created on first use."""
        slot = f"${slot}"
        if slot not in self._names:
            self._names[slot] = self._new_name(name)
            self._arguments[self._names[slot]] = DeclaredArgument(
                source_name=self._names[slot], description=hint or None
            )
        return self._names[slot]

    def _new_name(self, preferred: str) -> str:
        return (
            to_identifier(preferred, self._arguments)
            or to_identifier(f"arg{len(self._arguments) + 1}", self._arguments)
            or "_"
        )


def _declared_arguments(document: FrontMatterDocument, diagnostics: Diagnostics) -> list[DeclaredArgument]:
    """The declared arguments, without placeholders such as `arguments: $TARGET`."""
    named: dict[str, DeclaredArgument] = {}
    for argument in parse_declared_arguments(document, diagnostics)[: MAX_ARGUMENTS + 1]:
        source_name = argument.source_name.lstrip("$").strip("[]<>{}")
        if source_name not in ("", "ARGUMENTS"):
            named.setdefault(source_name, replace(argument, source_name=source_name))
    return list(named.values())


def _hint(node: YamlNode | None) -> _Hint:
    if node is None:
        return _Hint()
    if isinstance(node.value, list):
        # `[issue-number]` without quotes is a list to YAML.
        words = tuple(f"[{text}]" for item in node.value if (text := text_of(item)))
        return _Hint(" ".join(words), words)
    text = (text_of(node) or "").strip()[:2000]
    return _Hint(text, tuple(found for found in _HINT_WORD.findall(text) if to_identifier(found)))


def _word_name(word: str) -> str | None:
    """`[issue-number]` is `issue_number`; of `[--depth=N | --all]` only the first word counts."""
    inner = word.strip("[]<>{}\"' ").split("|")[0].split("=")[0].strip()
    name = to_identifier(inner.lower() if inner.isupper() else inner)
    return name if name and len(name) <= 40 else None
