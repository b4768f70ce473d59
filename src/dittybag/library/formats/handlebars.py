"""Translate Handlebars and Mustache templates to Jinja.

Arguments are text, so `{{#each xs}}` loops over the lines of `xs`, and a member (`{{a.b}}`) is always empty
and causes a warning. Supported are variables, `#if`, `#unless`, `#each`, `#with`, `#ifEquals`,
`#unlessEquals`, `else`, sections and inverted sections, comments, `~`, `../x`, `@root`, `@index`, `@first`,
`@last`, and Dotprompt's `role`, `history`, `section`, `json` and `media`. Partials, other helpers and
subexpressions cannot be translated, because their code is not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import accumulate
from typing import Final, NoReturn

from msgspec import Struct

from dittybag.domain.errors import clip
from dittybag.domain.role_marks import RoleMark, widen
from dittybag.library.formats.argument_declarations import to_identifier
from dittybag.library.formats.escaping import escape, string_literal
from dittybag.library.formats.handlebars_lexer import HandlebarsToken, Untranslatable, tokenise

MAX_DEPTH: Final = 50

_WORD: Final = re.compile(
    r"\"[^\"]*\"|'[^']*'|\|[^|]*\||[^\s\"'|=]+=(?:\"[^\"]*\"|'[^']*'|[^\s\"']+)"
    r"|(?:\[[^\]]{0,100}\]|[^\s\"'|])+|\S"
)
_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_SEGMENT: Final = re.compile(r"\[([^\]]*)\]|([^\s!\"#%&'()*+,./;<=>@\[\\\]^`{|}~]+)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERALS: Final = {"true": "true", "false": "false", "null": "none", "undefined": "none"}
#: The roles of Dotprompt's messages. It calls an assistant a model.
_ROLES: Final = {"system": "system", "user": "user", "model": "assistant", "assistant": "assistant"}
_LOOP: Final = {"index": "loop.index0", "first": "loop.first", "last": "loop.last"}


class Translation(Struct, frozen=True):
    """A Jinja template and the variables it uses."""

    text: str
    #: Whether there was anything to translate.
    changed: bool
    #: The name of every argument in the Jinja template, by its original name, in order of first use.
    names: dict[str, str]
    #: Original names of the arguments that the template loops over.
    lists: frozenset[str]
    #: Line numbers and paths of used members of arguments.
    members: list[tuple[int, str]]
    #: Where messages begin in `text`.
    roles: tuple[RoleMark, ...]


class _Scope(Struct):
    """The meaning of names inside a block."""

    #: The expression for `this`; None at the top level.
    this: str | None = None
    #: Names defined by the block.
    named: dict[str, str] = {}


class _Block(Struct):
    """An open block."""

    name: str
    line: int
    #: The Jinja tag that closes it.
    ending: str
    #: Whether it has an open scope.
    scoped: bool = False
    branching: bool = True


class _Failure(Exception):
    """Aborts the translation of one text; it does not leave this module."""

    def __init__(self, problem: Untranslatable) -> None:
        self.problem = problem


def translate(
    text: str, names: Mapping[str, str], *, flags: Collection[str] = (), mustache: bool = False
) -> Translation | Untranslatable:
    """Translate `text` to an equivalent Jinja template.

    `names`: the declared arguments, by original name. `flags`: arguments for which the text `false` is false.
    """
    tokens = tokenise(text)
    if isinstance(tokens, Untranslatable):
        return tokens
    try:
        return _Translator(names, flags, mustache=mustache).translate(tokens)
    except _Failure as failure:
        return failure.problem


class _Translator:
    def __init__(self, names: Mapping[str, str], flags: Collection[str], *, mustache: bool) -> None:
        self._declared = dict(names)
        self._taken = set(names.values())
        self._flags = flags
        self._mustache = mustache
        self._used: dict[str, str] = {}
        self._lists: set[str] = set()
        self._members: list[tuple[int, str]] = []
        self._scopes = [_Scope()]
        self._blocks: list[_Block] = []
        self._loops = 0
        self._out: list[str] = []
        #: The first and the last output of each role, and the role.
        self._roles: list[tuple[int, int, str]] = []
        self._line = 1
        self._helpers: dict[str, Callable[[list[str]], None]] = {
            "role": self._role,
            "history": lambda words: self._begin_message(len(self._out), "assistant"),
            "section": lambda words: None,
            "log": lambda words: None,
            "json": self._json,
            "media": self._media,
        }
        self._openers: dict[str, Callable[[list[str]], None]] = {
            "if": self._if,
            "unless": self._unless,
            "each": self._each,
            "with": self._with,
            "ifEquals": self._equal,
            "unlessEquals": self._equal,
            "role": self._role_block,
        }

    def translate(self, tokens: list[HandlebarsToken]) -> Translation:
        after_role = False
        for index, token in enumerate(tokens):
            self._line = token.line
            if token.kind == "text":
                self._out.append(escape(_without_first_break(token.content) if after_role else token.content))
                after_role = False
                continue
            before = len(self._out)
            self._tag(token.content, used_as_list=_used_as_list(tokens, index))
            after_role = (after_role and len(self._out) == before) or _is_role(token.content)
        if self._blocks:
            block = self._blocks[-1]
            self._line = block.line
            self._fail(f"{{{{#{clip(block.name, 60)}}}}} is not closed")
        text = "".join(self._out)
        return Translation(
            text=text,
            changed=any(token.kind == "tag" for token in tokens) or len(tokens) > 1,
            names=self._used,
            lists=frozenset(self._lists),
            members=self._members,
            roles=widen(text, self._role_marks()),
        )

    def _role_marks(self) -> Iterator[RoleMark]:
        offsets = [0, *accumulate(map(len, self._out))]
        for first, last, role in self._roles:
            yield RoleMark(offsets[first], offsets[last], role)

    def _fail(self, message: str) -> NoReturn:
        raise _Failure(Untranslatable(message, self._line))

    def _tag(self, content: str, *, used_as_list: bool) -> None:
        sigil, rest = (content[0], content[1:].strip()) if content[:1] in tuple("#/^>&!=*") else ("", content)
        words = _WORD.findall(rest)
        if sigil == "!":
            return
        if sigil == "/":
            self._close(rest)
        elif (sigil == "^" and not rest) or (not sigil and words[:1] == ["else"]):
            self._else(words[1:])
        elif sigil in ("#", "^"):
            self._open(words, inverted=sigil == "^", used_as_list=used_as_list)
        elif sigil == ">":
            self._fail(f"the partial {{{{>{clip(rest, 60)}}}}} is in another file; insert its text here")
        elif sigil in ("=", "*") or not words:
            self._fail(f"{{{{{clip(content, 60)}}}}} cannot be translated")
        else:
            self._value(words)

    def _value(self, words: list[str]) -> None:
        helper = None if self._mustache else self._helpers.get(words[0])
        if (helper is not None and words[0] not in self._declared) or (helper is not None and len(words) > 1):
            helper(words)
        elif len(words) > 1:
            self._fail(f"the helper '{clip(words[0], 60)}' is not supported")
        else:
            self._out.append(f"{{{{ {self._expression(words[0])} }}}}")

    def _role(self, words: list[str]) -> None:
        # Attributes such as purpose="preamble" are for the runtime of the template.
        names = [word for word in words[1:] if word[0] in "\"'" or "=" not in word]
        if len(names) != 1 or names[0][0] not in "\"'":
            self._fail('a role must have the form {{role "system"}}')
        role = names[0][1:-1]
        if role not in _ROLES:
            self._fail(f"the role '{clip(role, 60)}' is not supported; use system, user or model")
        first = len(self._out)
        if self._out and not self._out[-1].endswith("\n"):
            self._out.append("\n")
        self._out.append(f"{role}:\n")
        self._begin_message(first, _ROLES[role])

    def _begin_message(self, first: int, role: str) -> None:
        """Begin a message after the output since `first`, which is not part of it."""
        self._roles.append((first, len(self._out), role))

    def _role_block(self, words: list[str]) -> None:
        self._role(words)
        self._blocks.append(_Block("role", self._line, "", branching=False))

    def _json(self, words: list[str]) -> None:
        values = [word for word in words[1:] if "=" not in word or word[0] in "\"'"]
        if len(values) != 1:
            self._fail("{{json}} takes one value")
        self._out.append(f"{{{{ {self._expression(values[0])}|tojson }}}}")

    def _media(self, words: list[str]) -> None:
        """Media cannot be part of a text, so their URL is used."""
        address = next((word[4:] for word in words[1:] if word.startswith("url=")), None)
        if not address:
            self._fail("{{media}} needs url=")
        self._out.append(f"{{{{ {self._expression(address)} }}}}")

    def _open(self, words: list[str], *, inverted: bool, used_as_list: bool) -> None:
        if len(self._blocks) >= MAX_DEPTH:
            self._fail(f"blocks are nested more than {MAX_DEPTH} deep")
        if not words or words[0][0] in ">*":
            self._fail("this kind of block cannot be translated")
        opener = None if self._mustache or inverted else self._openers.get(words[0])
        if opener is not None:
            opener(words)
        elif len(words) > 1:
            self._fail(f"the helper '{clip(words[0], 60)}' is not supported")
        elif used_as_list and not inverted:
            self._loop(words[0], words[0], [])
        else:
            test = self._test(words[0])
            self._out.append(f"{{% if {f'not ({test})' if inverted else test} %}}")
            self._blocks.append(_Block(words[0], self._line, "{% endif %}"))

    def _if(self, words: list[str]) -> None:
        self._out.append(f"{{% if {self._test(self._single_value(words))} %}}")
        self._blocks.append(_Block(words[0], self._line, "{% endif %}"))

    def _unless(self, words: list[str]) -> None:
        self._out.append(f"{{% if not ({self._test(self._single_value(words))}) %}}")
        self._blocks.append(_Block(words[0], self._line, "{% endif %}"))

    def _equal(self, words: list[str]) -> None:
        if len(words) != 3:
            self._fail(f"{{{{#{words[0]}}}}} takes two values")
        sign = "==" if words[0] == "ifEquals" else "!="
        left, right = self._expression(words[1], as_text=True), self._expression(words[2], as_text=True)
        self._out.append(f"{{% if {left} {sign} {right} %}}")
        self._blocks.append(_Block(words[0], self._line, "{% endif %}"))

    def _with(self, words: list[str]) -> None:
        value = self._expression(self._single_value(words))
        self._out.append(f"{{% if {value} %}}")
        self._scopes.append(_Scope(value))
        self._blocks.append(_Block(words[0], self._line, "{% endif %}", scoped=True))

    def _each(self, words: list[str]) -> None:
        named: list[str] = []
        if len(words) == 4 and words[2] == "as" and words[3][0] == "|":
            named = words[3].strip("|").split()
            words = words[:2]
        self._loop("each", self._single_value(words), named)

    def _loop(self, block: str, path: str, named: list[str]) -> None:
        value = self._expression(path, is_list=True)
        self._loops += 1
        item = f"_item{self._loops}"
        self._out.append(f'{{% for {item} in ({value} or "")|lines %}}')
        # `loop.index0` always belongs to the innermost loop, so only the value keeps its name in inner loops.
        self._scopes.append(_Scope(item, dict(zip(named, (item, "loop.index0"), strict=False))))
        self._blocks.append(_Block(block, self._line, "{% endfor %}", scoped=True))

    def _else(self, words: list[str]) -> None:
        if not self._blocks or not self._blocks[-1].branching:
            self._fail("{{else}} is not inside a block that allows it")
        block = self._blocks[-1]
        if words:
            if words[0] != "if" or block.scoped or block.ending != "{% endif %}":
                self._fail(f"{{{{else {clip(words[0], 60)}}}}} cannot be translated here")
            self._out.append(f"{{% elif {self._test(self._single_value(words))} %}}")
            return
        if block.scoped:
            self._scopes.pop()
        block.scoped, block.branching = False, False
        self._out.append("{% else %}")

    def _close(self, name: str) -> None:
        if not self._blocks or self._blocks[-1].name != name:
            self._fail(f"{{{{/{clip(name, 60)}}}}} does not close an open block")
        block = self._blocks.pop()
        if block.scoped:
            self._scopes.pop()
        if block.ending:
            self._out.append(block.ending)
        if block.name == "role" and not block.ending:
            self._begin_message(len(self._out), "user")

    def _single_value(self, words: list[str]) -> str:
        if len(words) != 2:
            self._fail(f"{{{{#{clip(' '.join(words), 60)}}}}} must have exactly one value")
        return words[1]

    def _test(self, word: str) -> str:
        value = self._expression(word)
        return f'{value} and {value} != "false"' if word in self._flags else value

    def _expression(self, word: str, *, is_list: bool = False, as_text: bool = False) -> str:
        if word[0] in "\"'":
            return string_literal(word[1:-1])
        if word in _LITERALS:
            return string_literal(word) if as_text else _LITERALS[word]
        if _NUMBER.fullmatch(word):
            return string_literal(word) if as_text else word
        if word.startswith("@") and not word.startswith("@root."):
            return self._data(word[1:])
        return self._path(word, is_list=is_list)

    def _data(self, name: str) -> str:
        if name not in _LOOP or not any(block.ending == "{% endfor %}" for block in self._blocks):
            self._fail(f"'@{clip(name, 60)}' cannot be translated here")
        return _LOOP[name]

    def _path(self, path: str, *, is_list: bool) -> str:
        scope, rest = self._scope_of(path)
        if rest in ("", ".", "this"):
            if scope.this is None:
                self._fail("'this' refers to all arguments, which cannot be translated here")
            return scope.this
        rest = re.sub(r"^(?:this[./]|\./)", "", rest)
        own = rest != path and not path.startswith(("../", "@root."))
        segments = self._segments(rest, path)
        if not own and (alias := self._alias(segments[0])) is not None:
            value = alias
        elif scope.this is None or self._mustache:
            value = self._argument(segments[0])
            if is_list and len(segments) == 1:
                self._lists.add(segments[0])
        else:
            value = _member(scope.this, segments[0])
            self._members.append((self._line, path))
        for segment in segments[1:]:
            value = _member(value, segment)
        if len(segments) > 1:
            self._members.append((self._line, path))
        return value

    def _scope_of(self, path: str) -> tuple[_Scope, str]:
        if path.startswith("@root."):
            return self._scopes[0], path.removeprefix("@root.")
        up = 0
        while path.startswith("../"):
            path, up = path[3:], up + 1
        if path == "..":
            path, up = "", up + 1
        if up >= len(self._scopes):
            # Beyond the top level, where old versions of Handlebars count `#if` blocks as levels.
            return self._scopes[0], path
        return self._scopes[-1 - up], path

    def _segments(self, rest: str, path: str) -> list[str]:
        segments: list[str] = []
        at = 0
        while found := _SEGMENT.match(rest, at):
            segments.append(found[1] or found[2] or "")
            at = found.end()
            if at < len(rest) and rest[at] in "./":
                at += 1
            else:
                break
        if at != len(rest) or not all(segments):
            self._fail(f"'{clip(path, 60)}' cannot be translated")
        return segments

    def _alias(self, name: str) -> str | None:
        return next((scope.named[name] for scope in reversed(self._scopes) if name in scope.named), None)

    def _argument(self, name: str) -> str:
        if name not in self._used:
            found = self._declared.get(name) or to_identifier(name, self._taken)
            if found is None:
                self._fail(f"'{clip(name, 60)}' cannot be the name of an argument")
            self._used[name] = found
            self._taken.add(found)
        return self._used[name]


def _member(value: str, name: str) -> str:
    return f"{value}.{name}" if _NAME.fullmatch(name) else f"{value}[{string_literal(name)}]"


def _is_role(content: str) -> bool:
    return re.match(r"#?role\s", content) is not None


def _without_first_break(text: str) -> str:
    """Remove the first line break: a role already ends its line."""
    return re.sub(r"\A[ \t]*(?:\r?\n)?", "", text)


def _used_as_list(tokens: list[HandlebarsToken], index: int) -> bool:
    """Whether a section loops over the lines of its value: `{{#xs}} - {{.}} {{/xs}}`."""
    name = tokens[index].content[1:].strip()
    if tokens[index].content[:1] != "#" or " " in name:
        return False
    for token in tokens[index + 1 : index + 1 + 1000]:
        if token.kind == "tag":
            if token.content in (".", "this", "&."):
                return True
            if token.content[:1] == "/" and token.content[1:].strip() == name:
                return False
    return False
