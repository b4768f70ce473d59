"""How a document is shown by its type: never as anything that a browser would run."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from minijinja import Markup
from msgspec import Struct

from dittybag.domain.resources import Resource
from dittybag.protocol.lazy_tls import asyncio
from dittybag.web.highlight import Colours
from dittybag.web.markdown_html import markdown

#: As much of a text as is shown at once: it is made into HTML while others wait.
PREVIEW_LINES: Final = 400
PREVIEW_LENGTH: Final = 20_000
#: The source is shown as it is, which is cheap.
SOURCE_LINES: Final = 5000
SOURCE_LENGTH: Final = 300_000

#: A longer JSON text is shown as lines.
_TREE_LENGTH: Final = 300_000
_TREE_NODES: Final = 1000
_TREE_DEPTH: Final = 20
#: Branches deeper than that are closed at first.
_TREE_OPEN: Final = 2
_TABLE_LENGTH: Final = 500_000
_TABLE_ROWS: Final = 200
_TABLE_COLUMNS: Final = 40
_CELL_LENGTH: Final = 300

Kind: TypeAlias = Literal["markdown", "code", "tree", "table", "image", "text", "binary"]

_MARKDOWN: Final = {"text/markdown", "text/x-markdown"}
_TABLES: Final = {"text/csv": ",", "text/tab-separated-values": "\t"}
_LANGUAGES: Final = {
    "application/graphql": "graphql",
    "application/javascript": "javascript",
    "application/sql": "sql",
    "application/toml": "toml",
    "application/typescript": "typescript",
    "application/x-httpd-php": "php",
    "application/x-ndjson": "json",
    "application/x-python": "python",
    "application/x-sh": "bash",
    "application/x-shellscript": "bash",
    "application/x-tex": "tex",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "image/svg+xml": "xml",
    "text/css": "css",
    "text/html": "html",
    "text/javascript": "javascript",
    "text/x-c": "c",
    "text/x-diff": "diff",
    "text/x-go": "go",
    "text/x-java": "java",
    "text/x-python": "python",
    "text/x-rst": "rst",
    "text/x-ruby": "ruby",
    "text/x-rust": "rust",
    "text/x-typescript": "typescript",
    "text/xml": "xml",
    "text/yaml": "yaml",
}
_ENDINGS: Final = {
    "bash": "bash", "c": "c", "cc": "cpp", "cpp": "cpp", "cs": "csharp", "css": "css", "diff": "diff",
    "dockerfile": "docker", "go": "go", "graphql": "graphql", "h": "c", "hpp": "cpp", "htm": "html",
    "html": "html",
    "java": "java", "js": "javascript", "json": "json", "jsonl": "json", "jsx": "javascript",
    "kt": "kotlin", "lua": "lua", "makefile": "make", "md": "markdown", "patch": "diff", "php": "php",
    "pl": "perl",
    "ps1": "powershell", "py": "python", "r": "r", "rb": "ruby", "rs": "rust", "scala": "scala", "sh": "bash",
    "sql": "sql", "swift": "swift", "tex": "tex", "tf": "terraform", "toml": "toml", "ts": "typescript",
    "tsx": "typescript", "xml": "xml", "yaml": "yaml", "yml": "yaml", "zig": "zig",
}  # fmt: skip


class Excerpt(Struct, frozen=True):
    """The beginning of a text."""

    text: str
    #: How many lines are shown, and how many there are.
    shown: int
    lines: int
    is_cut: bool


class Node(Struct, frozen=True):
    """A piece of a JSON tree, in the order of reading: a branch begins, a value, a branch ends."""

    step: Literal["open", "value", "close", "cut"]
    key: str = ""
    #: What it is: `object`, `list`, `string`, `number`, `word`.
    type: str = ""
    text: str = ""
    count: int = 0
    is_open: bool = False


class Table(Struct, frozen=True):
    """The beginning of a table."""

    head: list[str]
    rows: list[list[str]]
    #: Whether there are more rows, and more columns.
    more_rows: bool
    more_columns: bool


class Preview(Struct, frozen=True, kw_only=True):
    """A document as people see it."""

    kind: Kind
    excerpt: Excerpt | None = None
    nodes: list[Node] | None = None
    table: Table | None = None
    #: What kept it from being shown in a better way.
    problem: str = ""
    #: The excerpt as HTML in which nothing can run; nothing for what templates show by themselves.
    html: Markup | None = None


async def preview_of(resource: Resource, content: bytes) -> Preview:
    """How a resource is shown."""
    if not resource.is_text:
        return Preview(kind="binary" if image_type(content) is None else "image")
    return await text_preview(resource.mime_type, resource.name, content.decode("utf-8", "replace"))


async def text_preview(mime_type: str, name: str, text: str) -> Preview:
    """How a text of a type is shown."""
    # Others go on meanwhile: a text may be made to take its time.
    return await asyncio.to_thread(_text_preview, mime_type, name, text)


async def markdown_of(excerpt: Excerpt) -> Markup:
    """The beginning of a text, taken for Markdown, as HTML in which nothing can run."""
    return await asyncio.to_thread(lambda: Markup(markdown(excerpt.text)))


def _text_preview(mime_type: str, name: str, text: str) -> Preview:
    kind = _bare(mime_type)
    if kind in _MARKDOWN:
        excerpt = excerpt_of(text)
        return Preview(kind="markdown", excerpt=excerpt, html=Markup(markdown(excerpt.text)))
    if kind in _TABLES:
        return _table_preview(text, _TABLES[kind])
    if _is_json(kind) and len(text) <= _TREE_LENGTH:
        return _tree_preview(text)
    language = _language(kind, name)
    excerpt = excerpt_of(text)
    if not language:
        return Preview(kind="text", excerpt=excerpt)
    html = f'<pre class="code"><code>{Colours().of(excerpt.text, language)}</code></pre>'
    return Preview(kind="code", excerpt=excerpt, html=Markup(html))


def _bare(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def _language(kind: str, name: str) -> str:
    if _is_json(kind):
        return "json"
    if kind in _LANGUAGES:
        return _LANGUAGES[kind]
    return _ENDINGS.get(name.lower().rpartition(".")[2], "")


def excerpt_of(text: str, lines: int = PREVIEW_LINES, length: int = PREVIEW_LENGTH) -> Excerpt:
    """The first lines of a text."""
    total = text.count("\n") + (not text.endswith("\n"))
    shown = "\n".join(text.split("\n", lines)[:lines]) if total > lines else text
    if len(shown) > length:
        # At the end of a line, unless that takes most of it away.
        end = shown.rfind("\n", length // 2, length)
        shown = shown[: end if end > 0 else length]
    is_cut = len(shown) < len(text)
    return Excerpt(shown, shown.count("\n") + 1 if is_cut else total, total, is_cut)


# Images

#: The image types that are shown, by how their files begin.
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(content: bytes) -> str | None:
    """The type of an image that browsers show and do not run, told from its bytes; nothing for all else."""
    for beginning, kind in _BEGINNINGS:
        if content.startswith(beginning):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:8] == b"ftyp" and content[8:12] in (b"avif", b"avis"):
        return "image/avif"
    return None


# JSON


class _Numeral(str):
    """A number as it was written: a tree shows what is there, not what a machine makes of it."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """The members of an object, also those of one name."""


def _tree_preview(text: str) -> Preview:
    try:
        value = json.loads(
            text,
            parse_int=_Numeral,
            parse_float=_Numeral,
            parse_constant=_Numeral,
            object_pairs_hook=_Members,
        )
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        problem = f"This is no JSON that could be read{where}, so it is shown as it is."
        return Preview(kind="text", excerpt=excerpt_of(text), problem=problem)
    return Preview(kind="tree", nodes=list(_bounded(_nodes("", value, 0))))


def _bounded(nodes: Iterator[Node]) -> Iterator[Node]:
    """As many as are shown, with every branch that was begun brought to its end."""
    depth = 0
    for at, node in enumerate(nodes):
        if at == _TREE_NODES:
            yield Node("cut")
            yield from (Node("close") for _ in range(depth))
            return
        depth += {"open": 1, "close": -1}.get(node.step, 0)
        yield node


def _nodes(key: str, value: Any, depth: int) -> Iterator[Node]:
    if not isinstance(value, list):
        yield Node("value", key, *_scalar(value))
        return
    is_object = isinstance(value, _Members)
    if not value:
        yield Node("value", key, "word", "{}" if is_object else "[]")
        return
    yield Node(
        "open",
        key,
        "object" if is_object else "list",
        count=len(value),
        is_open=depth < _TREE_OPEN and len(value) <= 100,
    )
    if depth >= _TREE_DEPTH:
        yield Node("cut")
    else:
        members = value if is_object else ((str(at), item) for at, item in enumerate(value))
        for name, item in members:
            yield from _nodes(name[:_CELL_LENGTH], item, depth + 1)
    yield Node("close")


def _scalar(value: Any) -> tuple[str, str]:
    if isinstance(value, _Numeral):
        return "number", value[:_CELL_LENGTH]
    if isinstance(value, str):
        return "string", _clipped(value)
    return "word", json.dumps(value)


def _clipped(text: str) -> str:
    return text if len(text) <= _CELL_LENGTH else text[:_CELL_LENGTH] + "…"


# Tables


def _table_preview(text: str, delimiter: str) -> Preview:
    first = text[:5000].partition("\n")[0]
    if delimiter == "," and first.count(";") > first.count(","):
        # As spreadsheets write it where the comma is for decimals.
        delimiter = ";"
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text[:_TABLE_LENGTH], newline=""), delimiter=delimiter):
            rows.append(row)
            if len(rows) > _TABLE_ROWS + 1:
                break
    except csv.Error as error:
        problem = f"This is no table that could be read ({error}), so it is shown as it is."
        return Preview(kind="text", excerpt=excerpt_of(text), problem=problem)
    if not rows:
        return Preview(kind="text", excerpt=excerpt_of(text))
    width = max(map(len, rows))
    columns = min(width, _TABLE_COLUMNS)
    shown = [[_clipped(cell) for cell in row[:columns]] + [""] * (columns - len(row)) for row in rows]
    return Preview(
        kind="table",
        table=Table(
            shown[0],
            shown[1 : _TABLE_ROWS + 1],
            len(rows) > _TABLE_ROWS + 1 or len(text) > _TABLE_LENGTH,
            width > columns,
        ),
    )
