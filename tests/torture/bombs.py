"""Template and file bombs: input that exhausts time or memory, or escapes its folder."""

from __future__ import annotations

import os
import re
import socket
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

#: The maximum size of a template.
SOURCE = 64 * 1024
#: The maximum size of a `twig.toml`.
MANIFEST = 256 * 1024

_NUMBERS = "range(100000)"


class TemplateBomb(Struct, frozen=True):
    """A template that must only cause an error for its caller."""

    name: str
    source: str
    #: The argument values. Each template declares `x` and `y`.
    arguments: dict[str, Any] = {}
    #: Other files of its library, by path.
    other_files: dict[str, str] = {}

    @property
    def key(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())

    @property
    def file(self) -> str:
        return f"prompts/{self.key}.md"


def repeat(start: str, again: str, end: str = "", limit: int = SOURCE) -> str:
    """Repeat `again` until the text has `limit` characters."""
    return start + again * ((limit - len(start) - len(end)) // len(again)) + end


def nested(opening: str, inside: str, closing: str, depth: int) -> str:
    return opening * depth + inside + closing * depth


def double_repeatedly(times: int, by: str) -> str:
    """Return a template that doubles the variable `s` repeatedly."""
    return "{% set s = 'xx' %}" + f"{{% set s = {by} %}}" * times + "{{ s }}"


def in_namespace(step: str, times: int = 64, first: str = "'xx'") -> str:
    """Return a template that applies `step` to the variable `ns.v` repeatedly."""
    again = f"{{% for i in range({times}) %}}{{% set ns.v = {step} %}}{{% endfor %}}"
    return f"{{% set ns = namespace(v={first}) %}}{again}{{{{ ns.v }}}}"


def loops(depth: int, inside: str = ".") -> str:
    return "".join(f"{{% for i{n} in {_NUMBERS} %}}" for n in range(depth)) + inside + "{% endfor %}" * depth


def _template_bombs() -> Iterator[TemplateBomb]:
    bomb = TemplateBomb
    # Deep nesting: against recursive parsers and compilers.
    yield bomb("deep minus signs", repeat("{{ ", "-", "1 }}"))
    yield bomb("deep not", repeat("{{ ", "not ", "1 }}"))
    yield bomb("deep parentheses", "{{ " + nested("(", "1", ")", 32_000) + " }}")
    yield bomb("deep lists", "{{ " + nested("[", "1", "]", 32_000) + " }}")
    yield bomb("deep dictionaries", "{{ " + nested("{'a':", "1", "}", 9_000) + " }}")
    yield bomb("deep calls", "{{ " + nested("x(", "1", ")", 16_000) + " }}")
    yield bomb("deep subscripts", "{{ " + nested("x[", "1", "]", 16_000) + " }}")
    yield bomb("deep ternaries", "{{ " + nested("(1 if x else ", "1", ")", 4_000) + " }}")
    yield bomb("deep ifs", nested("{% if x %}", "1", "{% endif %}", 2_900))
    yield bomb("deep fors", nested("{% for a in x %}", "1", "{% endfor %}", 2_200))
    yield bomb("deep withs", nested("{% with a=1 %}", "1", "{% endwith %}", 2_000))
    yield bomb("deep filter blocks", nested("{% filter upper %}", "1", "{% endfilter %}", 1_900))
    yield bomb("deep blocks", _blocks(1_500, inside_each_other=True))
    yield bomb("deep macros", _deep_macros(1_500))
    yield bomb("deep call blocks", nested("{% call x() %}", "1", "{% endcall %}", 2_000))
    yield bomb("deep autoescape", nested("{% autoescape true %}", "1", "{% endautoescape %}", 1_500))
    yield bomb("deep set blocks", nested("{% set a %}", "1", "{% endset %}", 2_500))
    # Long chains: against recursive evaluation.
    yield bomb("long sum", repeat("{{ 1", "+1", " }}"))
    yield bomb("long product", repeat("{{ 9", "*9", " }}"))
    yield bomb("long power", repeat("{{ 9", "**9", " }}"))
    yield bomb("long concatenation", repeat("{{ x", "~x", " }}"), {"x": "y" * 10_000})
    yield bomb("long and", repeat("{{ 1", " and 1", " }}"))
    yield bomb("long or", repeat("{{ 0", " or 0", " }}"))
    yield bomb("long comparison", repeat("{{ 1", "<2", " }}"))
    yield bomb("long in", repeat("{{ x", " in x", " }}"))
    yield bomb("long ternary", repeat("{{ 1", " if x else 1", " }}"))
    yield bomb("long attributes", repeat("{{ x", ".a", " }}"))
    yield bomb("long subscripts", repeat("{{ x", "[0]", " }}"))
    yield bomb("long calls", repeat("{{ x", "()", " }}"))
    yield bomb("long filters", repeat("{{ x", "|e", " }}"))
    yield bomb("long tests", repeat("{{ x", " is none", " }}"))
    yield bomb("long elif", repeat("{% if x %}", "{% elif x %}", "{% endif %}"))
    yield bomb("long else if", _else_if(1_800))
    yield bomb("many blocks", _blocks(1_800, inside_each_other=False))
    yield bomb("many arguments", "{{ x(" + ",".join(f"a{n}=1" for n in range(7_000)) + ") }}")
    yield bomb("many list items", repeat("{{ [1", ",1", "] }}"))
    yield bomb("many outputs", repeat("", "{{x}}"), {"x": "y" * 50_000})
    yield bomb("a very long name", repeat("{{ ", "a", " }}"))
    yield bomb("a very long string", repeat("{{ '", "a", "' * 9999 }}"))
    yield bomb("a very long number", repeat("{{ ", "9", " }}"))
    # Large results: against memory limits.
    yield bomb("a wide number", "{{ '%999999999d'|format(1) }}")
    yield bomb("a precise number", "{{ '%.999999999f'|format(1) }}")
    yield bomb("a width from an argument", "{{ '%*d'|format(999999999, 1) }}")
    yield bomb("a wide field", "{{ '{:>999999999}'.format(1) }}")
    yield bomb("a field in a field", "{{ '{:{}}'.format(1, 999999999) }}")
    yield bomb("a wide indent", "{{ x|indent(999999999, true, true) }}", {"x": "a\n" * 1000})
    yield bomb("a deep indent", "{{ [[1]]|tojson(indent=999999999) }}")
    yield bomb("wordwrap", "{{ (x * 1000)|wordwrap(width=1) }}", {"x": "a " * 10_000})
    yield bomb("wordwrap with a long break", "{{ x|wordwrap(width=1, wrapstring=x) }}", {"x": "a " * 10_000})
    yield bomb("truncate", "{{ x|truncate(length=1, end=x * 100000) }}", {"x": "a" * 10_000})
    yield bomb("a string many times", "{{ 'x' * 9999999999 }}")
    yield bomb("an argument many times", "{{ x * 99999 }}", {"x": "a" * 900_000})
    yield bomb("a list many times", "{{ ([1] * 999999999)|length }}")
    yield bomb("a list of lists many times", "{{ ([[1] * 99999] * 99999)|list|tojson }}")
    yield bomb("batch", f"{{{{ {_NUMBERS}|batch(999999999, x)|list }}}}", {"x": "y" * 1000})
    yield bomb("slice", f"{{{{ {_NUMBERS}|slice(99999999, x)|list }}}}", {"x": "y" * 1000})
    yield bomb("join", f"{{{{ {_NUMBERS}|join(x) }}}}", {"x": "y" * 100_000})
    yield bomb("join of joins", f"{{{{ {_NUMBERS}|join({_NUMBERS}|join(x)) }}}}", {"x": "y" * 100})
    yield bomb("replace between letters", "{{ x|replace('', x)|replace('', x) }}", {"x": "y" * 10_000})
    yield bomb("replace doubling", in_namespace("ns.v|replace('x', 'xx')"))
    yield bomb("method replace doubling", in_namespace("ns.v.replace('x', 'xx')"))
    yield bomb("tilde doubling", in_namespace("ns.v ~ ns.v"))
    yield bomb("plus doubling", in_namespace("ns.v + ns.v"))
    yield bomb("doubling without a loop", double_repeatedly(60, "s ~ s"))
    yield bomb("doubling in a set block", "{% set s = 'xx' %}" + "{% set s %}{{ s }}{{ s }}{% endset %}" * 60)
    yield bomb("list doubling", in_namespace("ns.v + ns.v", first="[1]"))
    yield bomb("escaping again and again", in_namespace("ns.v|escape|string ~ ns.v", first="'&'"))
    yield bomb("urlencode again and again", in_namespace("ns.v|urlencode ~ ns.v", first="'%'"))
    yield bomb("nested data", in_namespace("[ns.v, ns.v]", first="[]") + "{{ ns.v|tojson }}{{ ns.v|pprint }}")
    yield bomb("nested data, one path", in_namespace("[ns.v]", 90_000, "[]") + "{{ ns.v|pprint }}")
    yield bomb("nested dictionaries", in_namespace("{'a': ns.v, 'b': ns.v}", first="{}"))
    yield bomb("nested data compared", in_namespace("[ns.v, ns.v]", first="[]") + "{{ ns.v == ns.v }}")
    yield bomb("nested data summed", in_namespace("[ns.v, ns.v]", first="[]") + "{{ ns.v|sum }}")
    yield bomb("a namespace in itself", "{% set n = namespace() %}{% set n.n = n %}{{ n }}{{ n|tojson }}")
    # Endless loops and recursion: against time limits.
    yield bomb("loops in loops", loops(8))
    yield bomb("loops in loops without output", loops(8, ""))
    yield bomb("loops in loops with a filter", loops(3, "{{ x|upper|lower|title }}"), {"x": "ab" * 10_000})
    yield bomb("in, in a loop", loops(2, "{% if 'no' in x %}{% endif %}"), {"x": "y" * 900_000})
    yield bomb("in a list, in a loop", f"{{% set l = {_NUMBERS}|list %}}" + loops(2, "{{ -1 in l }}"))
    yield bomb("a range that is too long", "{{ range(999999999999)|list|length }}")
    yield bomb("a range backwards", "{{ range(999999999, -999999999, -1)|list }}")
    yield bomb("sorted in a loop", loops(2, f"{{{{ ({_NUMBERS}|sort(reverse=true))[0] }}}}"))
    yield bomb("unique in a loop", loops(2, f"{{{{ ({_NUMBERS}|unique)|first }}}}"))
    yield bomb("grouped in a loop", loops(2, f"{{{{ ({_NUMBERS}|groupby('a'))|first }}}}"))
    yield bomb("zip and chain", f"{{{{ {_NUMBERS}|zip(" + ",".join([_NUMBERS] * 99) + ")|list|list|tojson }}")
    yield bomb("chains of chains", in_namespace("ns.v|chain(ns.v)", first="[1]") + "{{ ns.v|list|length }}")
    yield bomb("a deep chain", in_namespace("ns.v|chain([1])", 90_000, "[1]") + "{{ ns.v|list|length }}")
    yield bomb("split", loops(2, "{{ x.split('a')|length }}"), {"x": "a" * 500_000})
    yield bomb("a macro that calls itself", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}")
    yield bomb(
        "a macro that calls itself twice",
        "{% macro m(n) %}{% if n %}{{ m(n-1) }}{{ m(n-1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    )
    yield bomb(
        "macros that call each other",
        "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
    )
    yield bomb("a macro handed to itself", "{% macro m(f) %}{{ f(f) }}{% endmacro %}{{ m(m) }}")
    yield bomb("a loop that calls itself", "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}")
    yield bomb(
        "a loop that calls itself twice",
        "{% for a in [1, 1] recursive %}{% if loop.depth < 60 %}{{ loop([1, 1]) }}{% endif %}{% endfor %}",
    )
    yield bomb("a block in itself", "{% block a %}{{ self.a() }}{% endblock %}")
    yield bomb(
        "a caller that calls",
        "{% macro m() %}{{ caller() }}{{ caller() }}{% endmacro %}"
        + nested("{% call m() %}", "x", "{% endcall %}", 40),
    )
    # Includes: against the loader.
    yield bomb("it includes itself", "{% include 'prompts/it-includes-itself.md' %}")
    yield bomb("it includes itself twice", "{% include 'prompts/it-includes-itself-twice.md' %}" * 2)
    yield bomb(
        "mutual includes",
        "{% include 'parts/ping.md' %}",
        other_files={
            "parts/ping.md": "{% include 'parts/pong.md' %}",
            "parts/pong.md": "{% include 'parts/ping.md' %}",
        },
    )
    yield bomb("it extends itself", "{% extends 'prompts/it-extends-itself.md' %}")
    yield bomb(
        "mutual extends",
        "{% extends 'parts/king.md' %}",
        other_files={
            "parts/king.md": "{% extends 'parts/kong.md' %}",
            "parts/kong.md": "{% extends 'parts/king.md' %}",
        },
    )
    yield bomb(
        "mutual imports",
        "{% import 'parts/me.md' as a %}{{ a.b() }}",
        other_files={
            "parts/me.md": "{% import 'parts/you.md' as b %}",
            "parts/you.md": "{% import 'parts/me.md' as c %}",
        },
    )
    yield bomb("includes without end", "{% for i in range(9999) %}{% include 'parts/' ~ i %}{% endfor %}")
    yield bomb(
        "missing includes without end",
        "{% for i in range(9999) %}{% include 'no/' ~ i ignore missing %}{% endfor %}",
    )
    yield bomb(
        "many includes",
        "".join(f"{{% include 'parts/many-{n}.md' %}}" for n in range(60)),
        other_files={f"parts/many-{n}.md": str(n) for n in range(60)},
    )
    yield bomb(
        "large includes",
        "".join(f"{{% include 'parts/large-{n}.md' %}}" for n in range(40)),
        other_files={f"parts/large-{n}.md": "x" * SOURCE for n in range(40)},
    )
    yield bomb(
        "work before every include",
        "{% for i in range(100000) %}{{ '' }}{% endfor %}" * 3
        + "".join(f"{{% include 'parts/slow-{n}.md' %}}" for n in range(50)),
        other_files={f"parts/slow-{n}.md": "x" for n in range(50)},
    )
    yield bomb(
        "layers of includes",
        "{% include 'parts/layer-0.md' %}",
        other_files={
            f"parts/layer-{n}.md": f"{{% include 'parts/layer-{n + 1}.md' %}}" * 8 for n in range(30)
        },
    )
    yield bomb(
        "an error below many includes",
        "{% include 'parts/wrong-0.md' %}",
        other_files={
            **{f"parts/wrong-{n}.md": f"{{% include 'parts/wrong-{n + 1}.md' %}}" for n in range(20)},
            "parts/wrong-20.md": loops(1, "{{ x }}") + "{{ 1/0 }}",
        },
    )
    # Unterminated syntax: against the lexer.
    yield bomb("only openings of outputs", repeat("", "{{"))
    yield bomb("only openings of tags", repeat("", "{%"))
    yield bomb("only openings of comments", repeat("", "{#"))
    yield bomb("only endings", repeat("", "}}%}#}"))
    yield bomb("only quotes", repeat("{{ ", "'\"", " }}"))
    yield bomb("only dots", repeat("{{ x", ".", " }}"))
    yield bomb("only escapes", repeat("{{ '", "\\u00", "' }}"))
    yield bomb("raw without end", repeat("{% raw %}", "{{ x }}{% raw %}"))
    yield bomb("raw blocks", repeat("", "{% raw %}{{{% endraw %}"))
    yield bomb("end tags without a start", repeat("", "{% endfor %}"))
    yield bomb("tags that do not match", repeat("", "{% if x %}{% endfor %}"))
    yield bomb("whitespace in a tag", repeat("{{", " \n\t", "}}"))
    yield bomb("names from right to left", repeat("", "{{ \u202ex\u202c }}", limit=SOURCE // 2))
    yield bomb("names in other letters", repeat("", "{{ ℌ𝔢𝔩𝔩𝔬 }}", limit=SOURCE // 3))
    yield bomb(
        "letters with a thousand accents",
        "a" + "\u0301" * 30_000 + "{{ x|upper|title|length }}",
        {"x": "ﬃ" * 300_000},
    )
    yield bomb("titles of letters that grow", in_namespace("ns.v|upper ~ ns.v|title", first="'ŉﬃΐ'"))
    # Arguments: against code that treats them as anything but data.
    yield bomb("an argument as large as allowed", "{{ x }}{{ y }}", {"x": "x" * 1_000_000, "y": "z"})
    yield bomb("an argument of control characters", "{{ x }}", {"x": "\x01" * 300_000})
    yield bomb("arguments larger than allowed", "{{ x }}", {"x": "x" * 1_000_000, "y": "y" * 1_000_000})
    yield bomb("an argument that is a template", "{{ x }}", {"x": loops(8)})
    yield bomb(
        "an argument that is a format", "{{ x|format(1) }}{{ x.format(1) }}", {"x": "%999999999d{:999999999}"}
    )
    yield bomb("an argument that is nested", "{{ x|length }}", {"x": _nested_list(400)})
    yield bomb("an argument that is a list", "{{ x|length }}", {"x": list(range(100_000))})


def _else_if(depth: int) -> str:
    return "{% if x %}" + "{% else %}{% if x %}" * depth + "{% endif %}" * (depth + 1)


def _blocks(count: int, *, inside_each_other: bool) -> str:
    starts = [f"{{% block b{n} %}}" for n in range(count)]
    if inside_each_other:
        return "".join(starts) + "{% endblock %}" * count
    return "".join(start + "{% endblock %}" for start in starts)


def _deep_macros(count: int) -> str:
    return "".join(f"{{% macro m{n}() %}}" for n in range(count)) + "{% endmacro %}" * count


def _nested_list(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


TEMPLATE_BOMBS = tuple(_template_bombs())


class FileBomb(Struct, frozen=True):
    """Files in a library folder that must only cause a report about this library."""

    name: str
    #: Writes the files into the folder of a library.
    write_files: Callable[[Path], None]
    #: Whether it needs its own server start because it has many files.
    many_files: bool = False


def text(file: str, content: str | bytes) -> Callable[[Path], None]:
    return lambda folder: _write(folder, {file: content})


def manifest(content: str | bytes) -> Callable[[Path], None]:
    return text("twig.toml", content)


def front_matter(fields: str) -> Callable[[Path], None]:
    return text("prompt.md", f"---\n{fields}\n---\nA text\n")


def link(file: str, target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / file).symlink_to(target)


def _write(folder: Path, files: Mapping[str, str | bytes]) -> None:
    for file, content in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def _file_bombs() -> Iterator[FileBomb]:
    bomb = FileBomb
    # TOML
    yield bomb("a long dotted key", manifest(repeat("", "a.", "a = 1", limit=40_000)))
    yield bomb("a long dotted header", manifest(repeat("[", "a.", "a]", limit=40_000)))
    yield bomb("a long dotted prompt", manifest(repeat("[prompts.", "a.", "a]", limit=40_000)))
    yield bomb("many dotted keys", manifest("\n".join(f"a.b.c.d.e.f.g.k{n} = 1" for n in range(10_000))))
    yield bomb("deep arrays", manifest("x = " + nested("[", "1", "]", 120_000)))
    yield bomb("deep inline tables", manifest("x = " + nested("{a=", "1", "}", 60_000)))
    yield bomb("arrays without end", manifest(repeat("x = ", "[", limit=MANIFEST)))
    yield bomb("100,000 keys", manifest("\n".join(f"k{n} = 1" for n in range(100_000))))
    yield bomb("20,000 keys", manifest("\n".join(f"k{n} = 1" for n in range(20_000))))
    yield bomb("15,000 prompts", manifest("\n".join(f"[prompts.p{n}]" for n in range(15_000))))
    yield bomb("9,000 arguments", manifest("[prompts.a]\n" + "[[prompts.a.arguments]]\n" * 9_000))
    yield bomb("a huge integer", manifest(repeat("x = ", "9", limit=MANIFEST)))
    yield bomb("a huge float", manifest(repeat("x = 1.", "9", "e999999999", limit=MANIFEST)))
    yield bomb("duplicate keys", manifest(repeat("", "a = 1\n", limit=MANIFEST)))
    yield bomb("duplicate tables", manifest(repeat("", "[a]\n", limit=MANIFEST)))
    yield bomb("a long string", manifest(repeat("[prompts.a]\ndescription = '", "x", "'\n", limit=MANIFEST)))
    yield bomb("a string without end", manifest(repeat('x = """', '""\\"', limit=MANIFEST)))
    yield bomb("control characters", manifest(bytes(range(1, 32)) * 1000))
    yield bomb("carriage returns alone", manifest("[prompts.a]\rdescription = 'x'\r" * 1000))
    yield bomb("zero bytes", manifest(b"\0" * MANIFEST))
    yield bomb("bytes that are not text", manifest(b"\xff\xfe\xed\xa0\x80" * 1000))
    yield bomb("headers that never end", manifest(repeat("", "[prompts . a\n", limit=MANIFEST)))
    yield bomb("a manifest of one byte too many", manifest(" " * (MANIFEST + 1)))
    # YAML
    yield bomb("a billion laughs", front_matter(_laughs()))
    yield bomb("an alias to itself", front_matter("a: &a [*a, *a]"))
    yield bomb(
        "merge keys", front_matter("a: &a {x: 1}\n" + "".join(f"b{n}: {{<<: *a}}\n" for n in range(2000)))
    )
    yield bomb("deep flow lists", front_matter("a: " + nested("[", "1", "]", 30_000)))
    yield bomb("deep flow mappings", front_matter("a: " + nested("{a: ", "1", "}", 12_000)))
    yield bomb("flow without end", front_matter(repeat("a: ", "[{", limit=60_000)))
    yield bomb("deep block lists", front_matter("a:\n  " + "- " * 30_000 + "1"))
    yield bomb("deep block mappings", front_matter("\n".join(" " * n + "a:" for n in range(340))))
    yield bomb("deep complex keys", front_matter("? " * 30_000 + "a"))
    yield bomb("100,000 fields", front_matter("\n".join(f"k{n}: 1" for n in range(100_000))))
    yield bomb("6,000 fields", front_matter("\n".join(f"k{n}: 1" for n in range(6_000))))
    yield bomb("6,000 broken fields", front_matter("\n".join(f"k{n}: [" for n in range(6_000))))
    yield bomb("15,000 arguments", front_matter("arguments:\n" + "".join(f"- a{n}\n" for n in range(7_500))))
    yield bomb("a huge scalar", front_matter(repeat("description: ", "x", limit=60_000)))
    yield bomb("a huge folded scalar", front_matter("description: >\n" + "  x\n\n" * 10_000))
    yield bomb("a huge key", front_matter(repeat("", "k", ": 1", limit=60_000)))
    yield bomb("tags", front_matter("a: !!python/object/apply:os.system [touch /tmp/never]\n" * 500))
    yield bomb("tags that are long", front_matter(repeat("a: !", "x", " 1", limit=60_000)))
    yield bomb("tabs", front_matter("a:\n" + "\t\t- x\n" * 10_000))
    yield bomb("document separators", text("prompt.md", "---\n" * 16_000))
    yield bomb("document ends", front_matter("...\n" * 15_000))
    yield bomb("directives", front_matter("%YAML 1.1\n%TAG ! tag:x,\n" * 2_000))
    yield bomb("quotes without end", front_matter("a: '" + "''" * 30_000))
    yield bomb("a deep template of llm", text("a.yaml", "prompt: " + nested("[", "1", "]", 30_000)))
    yield bomb(
        "a command with many arguments", text(".claude/commands/a.md", " $ARGUMENTS $1 @f !`x`" * 2_500)
    )
    yield bomb("code spans", text(".claude/commands/a.md", repeat("$1", "`` ` ", limit=SOURCE)))
    yield bomb("a skill of one line", text("a/SKILL.md", repeat("---\nname: a\n---\n", "x", limit=SOURCE)))
    yield bomb(
        "a prompty of roles", text("a.prompty", repeat("---\nname: a\n---\n", "system:\n", limit=SOURCE))
    )
    # Files
    yield bomb("20,000 lines", text("a.md", "x\n" * 20_000))
    yield bomb("100,000 lines", text("a.md", "x\n" * 100_000))
    yield bomb("one line", text("a.md", "x" * SOURCE))
    yield bomb("one byte too many", text("a.md", "x" * (SOURCE + 1)))
    yield bomb("nothing but zero bytes", text("a.md", b"\0" * SOURCE))
    yield bomb("an archive", _archive)
    yield bomb("pipes", _pipes)
    yield bomb("a pipe for a manifest", lambda folder: os.mkfifo(folder / "twig.toml"))
    yield bomb("a socket", _socket)
    yield bomb("a link to a device", _devices)
    yield bomb("a link to a terminal", link("a.md", "/dev/tty"))
    yield bomb("a link to itself", link("a.md", "a.md"))
    yield bomb("links in a circle", _circle)
    yield bomb("a link to its own folder", link("again", "."))
    yield bomb("links to everything", _everything)
    yield bomb("a chain of links", _chain)
    yield bomb("a deep tree", lambda folder: _write(folder, {"/".join("d" * 200) + "/a.md": "x"}))
    yield bomb("3,000 empty folders", _empty_folders, many_files=True)
    yield bomb("2,000 links to nothing", _dead_links, many_files=True)
    yield bomb("10,001 files", _many_files, many_files=True)
    yield bomb("2,000 broken files", _broken_files, many_files=True)
    yield bomb("30 slow files", _slow_files, many_files=True)
    yield bomb("1,500 large files", _large_files, many_files=True)
    yield bomb("a file of 10 GB", _sparse)
    yield bomb("a manifest of 10 GB", lambda folder: _sparse(folder, "twig.toml"))
    yield bomb("odd names", _odd_names)
    yield bomb("folders with names of files", _folders)


def _laughs() -> str:
    lines = ["l0: &l0 ha"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]
    return "\n".join(lines)


def _archive(folder: Path) -> None:
    with zipfile.ZipFile(folder / "a.md", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("b.md", b"\0" * 10_000_000)


def _pipes(folder: Path) -> None:
    _write(folder, {"twig.toml": "[prompts.a]\n"})
    (folder / "prompts").mkdir()
    os.mkfifo(folder / "prompts" / "a.md")
    os.mkfifo(folder / "b.md")


def _socket(folder: Path) -> None:
    # Socket paths have a short maximum length.
    at = os.open(folder, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"/proc/self/fd/{at}/a.md")
    finally:
        os.close(at)


def _devices(folder: Path) -> None:
    for device in ("zero", "random", "stdin", "null", "full"):
        (folder / f"{device}.md").symlink_to(f"/dev/{device}")
    (folder / "twig.toml").symlink_to("/dev/zero")


def _everything(folder: Path) -> None:
    (folder / "everything").symlink_to("/")
    (folder / "processes").symlink_to("/proc")


def _circle(folder: Path) -> None:
    for here, there in (("a.md", "b.md"), ("b.md", "c.md"), ("c.md", "a.md")):
        (folder / here).symlink_to(there)
    (folder / "d").mkdir()
    (folder / "d" / "up").symlink_to("..")


def _chain(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.md").symlink_to(f"{number + 1}.md")
    _write(folder, {"100.md": "x"})


def _empty_folders(folder: Path) -> None:
    for number in range(3_000):
        (folder / f"d{number}").mkdir()


def _dead_links(folder: Path) -> None:
    for number in range(2_000):
        (folder / f"l{number}.md").symlink_to("/nowhere")


def _many_files(folder: Path) -> None:
    _write(folder, {"first.md": "x"})
    for number in range(10_000):
        os.link(folder / "first.md", folder / f"f{number}.md")


def _broken_files(folder: Path) -> None:
    _write(folder, {"first.md": b"\xff"})
    for number in range(2_000):
        os.link(folder / "first.md", folder / f"f{number}.md")


def _slow_files(folder: Path) -> None:
    _write(folder, {"first.md": repeat("---\na: [b] [c]\n", "a:\n", "---\nx")})
    for number in range(29):
        os.link(folder / "first.md", folder / f"f{number}.md")


def _large_files(folder: Path) -> None:
    _write(folder, {"first.md": "x" * SOURCE})
    for number in range(1_500):
        os.link(folder / "first.md", folder / f"f{number}.md")


def _sparse(folder: Path, file: str = "a.md") -> None:
    with (folder / file).open("wb") as opened:
        opened.truncate(10 * 1024**3)


def _odd_names(folder: Path) -> None:
    bad = [b"new\nline.md", b"escape\x1b[2J.md", b"bad\xff\xfe.md", b"right\xe2\x80\xaeto left.md", b" .md"]
    odd = [b"back\\slash.md", b"-rf.md", b".md", b"..md", b"...", b"a:b.md", b"'\"$(x)`.md", b"%2e%2e%2f.md"]
    for name in (*bad, *odd, b"x" * 250 + b".md", b"{{x}}.md", b"CON.md", b"\xf0\x9f\x92\xa3.md"):
        (folder / os.fsdecode(name)).write_bytes(b"x")


def _folders(folder: Path) -> None:
    for name in ("twig.toml", "a.md", "SKILL.md", "system.md"):
        (folder / name).mkdir()


FILE_BOMBS = tuple(_file_bombs())
