"""Claude Code's commands: Markdown in which `$ARGUMENTS` and `$1` stand for what is typed after them.

`$ARGUMENTS` becomes the argument `arguments`. `$ARGUMENTS[0]` and `$1` become arguments that are called by
the words of `argument-hint` (`[issue-number] [priority]`), else `arg1` and so on; the names of an
`arguments:` list in the front matter go before both, and are also replaced as `$name`. `$1` is the first
argument, as in commands; in a text that uses `$0`, that is the first, as in skills. All are optional. A
command that has a hint but no placeholder gets its arguments at the end, as Claude Code hands them over:
`ARGUMENTS: ...`.

Everything else comes out as it is written, commands (!`git status`) and `@file` references too: they are
text here and nothing is run. A dollar sign and a digit is more often money or a program's own variable than
an argument:
- outside of code, `$N` is an argument if the hint has so many words or all of `$1` to `$N` are there, and
  if it does not look like an amount (`$10`, `$5.00`, `$5k`, `$3 million`, `$5/month`);
- in inline code, it is one only if the hint has so many words or the text outside uses it; in a fenced block,
  where scripts use their own `$1`, only if the text outside of fences uses it; never beside `awk`, and it
  stays as written while the argument is not given.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.prompts import MAX_ARGUMENTS
from dittybag.library.formats.argument_declarations import DeclaredArgument, identifier, signature
from dittybag.library.formats.code_spans import CodeSpans
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.escaping import literal, quoted
from dittybag.library.formats.front_matter import FrontMatterDocument
from dittybag.library.formats.markdown import declared_arguments, description
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import titled
from dittybag.library.formats.yaml_nodes import YamlNode, text_of

_SIGNS: Final = ("argument-hint", "allowed-tools", "disable-model-invocation")
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
    """What a command says about its arguments."""

    text: str = ""
    words: tuple[str, ...] = ()


def has_signs(document: FrontMatterDocument) -> bool:
    """Whether a Markdown file is a command, wherever it lies."""
    return any(sign in document.fields for sign in _SIGNS) or takes_arguments(document)


def takes_arguments(document: FrontMatterDocument) -> bool:
    """Whether the text has a place for all that is typed after the command."""
    return any(found["all"] or found["index"] for found in _PLACEHOLDER.finditer(document.body))


def is_jinja(document: FrontMatterDocument, notes: Diagnostics) -> bool:
    """Whether the text uses the arguments it declares as `{{ name }}`, and none as a command does."""
    names = {wanted.written for wanted in declared_arguments(document, Diagnostics(notes.file))}
    if not names or takes_arguments(document):
        return False
    if any(found["name"] in names for found in _PLACEHOLDER.finditer(document.body)):
        return False
    expressions = _EXPRESSION.findall(document.body)
    return any(word in names for expression in expressions for word in _NAME.findall(expression))


def draft(file: str, key: str, document: FrontMatterDocument, notes: Diagnostics) -> ParsedPrompt:
    """The prompt in a command."""
    text, wanted = _Translation(document, notes).result()
    found = signature(wanted, notes, rename=True)
    return ParsedPrompt(
        key=key,
        title=titled(document.text("title") or document.text("name")),
        description=description(document, notes),
        arguments=found.arguments,
        defaults=found.defaults,
        text=text if wanted else document.body,
        template=bool(wanted),
        file=file,
        lines_before=document.lines_before,
    )


class _Translation:
    """A command's text on its way to a template."""

    def __init__(self, document: FrontMatterDocument, notes: Diagnostics) -> None:
        self._body = document.body
        self._hint = _hint(document.fields.get("argument-hint"))
        self._declared = _declared(document, notes)
        self._code = CodeSpans(self._body)
        self._found = list(_PLACEHOLDER.finditer(self._body))
        prose = {int(found["digit"]) for found in self._found if found["digit"] and self._is_prose(found)}
        #: The digit that stands for the first argument.
        self._first = 0 if 0 in prose else 1
        #: The arguments that are used where `$N` can only be meant as one.
        self._indexes = {int(found["index"]) for found in self._found if found["index"]}
        self._indexes |= {digit - self._first for digit in prose}
        self._inline = {
            int(found["digit"]) - self._first
            for found in self._found
            if found["digit"] and self._code.kind(found.start()) == "inline"
        }
        self._names: dict[str, str] = {}
        self._wanted: dict[str, DeclaredArgument] = {}
        for one in self._declared:
            name = self._new_name(one.written)
            self._names[one.written] = name
            self._wanted[name] = replace(one, written=name, required=False)

    def result(self) -> tuple[str, list[DeclaredArgument]]:
        pieces = []
        at = 0
        for found in self._found:
            expression = self._expression(found)
            if expression is not None:
                pieces += [literal(self._body[at : found.start()]), f"{{{{ {expression} }}}}"]
                at = found.end()
        pieces.append(literal(self._body[at:]))
        if not pieces[:-1] and (self._hint.text or self._declared):
            pieces.append(self._appended())
        return "".join(pieces), list(self._wanted.values())

    def _appended(self) -> str:
        """All arguments at the end, for a text that has no place for them."""
        gap = "\n" if self._body.endswith("\n") else "\n\n"
        if not self._declared:
            name = self._argument("arguments", self._hint.text)
            return f"{{% if {name} %}}{gap}ARGUMENTS: {{{{ {name} }}}}{{% endif %}}"
        names = list(self._wanted)
        lines = "".join(f"{{% if {name} %}}\n{name}: {{{{ {name} }}}}{{% endif %}}" for name in names)
        return f"{{% if {' or '.join(names)} %}}{gap}ARGUMENTS:{lines}{{% endif %}}"

    def _expression(self, found: re.Match[str]) -> str | None:
        """What takes the place of a placeholder; None if it is none."""
        if found["all"]:
            return self._argument("arguments", self._hint.text)
        if found["name"]:
            return self._names.get(found["name"])
        if found["index"]:
            return self._positional(int(found["index"]))
        index = int(found["digit"]) - self._first
        if index < 0 or not self._announced(index):
            return None
        kind = self._code.kind(found.start())
        if self._beside_awk(found.start()):
            return None
        if kind is None:
            return None if self._is_amount(found) else self._positional(index)
        if kind == "fenced" and index not in self._indexes | self._inline:
            return None
        return f"{self._positional(index)} or {quoted(found[0])}"

    def _announced(self, index: int) -> bool:
        known = max(len(self._hint.words), len(self._declared))
        return index < known or self._indexes.issuperset(range(index + 1))

    def _is_prose(self, found: re.Match[str]) -> bool:
        at = found.start()
        return self._code.kind(at) is None and not self._is_amount(found) and not self._beside_awk(at)

    def _is_amount(self, found: re.Match[str]) -> bool:
        before = self._body[found.start() - 1 : found.start()]
        return before.isalnum() or _AMOUNT.match(self._body, found.end()) is not None

    def _beside_awk(self, at: int) -> bool:
        start = self._body.rfind("\n", 0, at) + 1
        return "awk" in self._body[max(start, at - 1000) : at]

    def _positional(self, index: int) -> str:
        if index < len(self._declared):
            return self._names[self._declared[index].written]
        word = self._hint.words[index] if index < len(self._hint.words) else ""
        return self._argument(str(index), word, _word_name(word) or f"arg{index + 1}")

    def _argument(self, what: str, hint: str, name: str = "arguments") -> str:
        """The name of an argument, which is made when it is first used."""
        what = f"${what}"
        if what not in self._names:
            self._names[what] = self._new_name(name)
            self._wanted[self._names[what]] = DeclaredArgument(
                written=self._names[what], description=hint or None
            )
        return self._names[what]

    def _new_name(self, wanted: str) -> str:
        return (
            identifier(wanted, self._wanted) or identifier(f"arg{len(self._wanted) + 1}", self._wanted) or "_"
        )


def _declared(document: FrontMatterDocument, notes: Diagnostics) -> list[DeclaredArgument]:
    """Some write `arguments: $TARGET`, which only repeats what stands in the text."""
    named: dict[str, DeclaredArgument] = {}
    for one in declared_arguments(document, notes)[: MAX_ARGUMENTS + 1]:
        written = one.written.lstrip("$").strip("[]<>{}")
        if written not in ("", "ARGUMENTS"):
            named.setdefault(written, replace(one, written=written))
    return list(named.values())


def _hint(node: YamlNode | None) -> _Hint:
    if node is None:
        return _Hint()
    if isinstance(node.value, list):
        # `[issue-number]` without quotes is a list to YAML.
        words = tuple(f"[{text}]" for item in node.value if (text := text_of(item)))
        return _Hint(" ".join(words), words)
    text = (text_of(node) or "").strip()[:2000]
    return _Hint(text, tuple(found for found in _HINT_WORD.findall(text) if identifier(found)))


def _word_name(word: str) -> str | None:
    """`[issue-number]` is `issue_number`; of `[--depth=N | --all]` only the first word counts."""
    inner = word.strip("[]<>{}\"' ").split("|")[0].split("=")[0].strip()
    name = identifier(inner.lower() if inner.isupper() else inner)
    return name if name and len(name) <= 40 else None
