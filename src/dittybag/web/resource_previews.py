"""Previews of resources by type. A preview never contains anything that a browser would execute."""

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
from dittybag.web.highlight import Highlighter
from dittybag.web.markdown_html import markdown

#: Limits of a rendered preview, which takes CPU time.
PREVIEW_LINES: Final = 400
PREVIEW_LENGTH: Final = 20_000
#: Limits of the source view, which is cheap.
SOURCE_LINES: Final = 5000
SOURCE_LENGTH: Final = 300_000

#: Longer JSON is shown as highlighted text.
_TREE_LENGTH: Final = 300_000
_TREE_NODES: Final = 1000
_TREE_DEPTH: Final = 20
#: Deeper branches are collapsed at first.
_TREE_OPEN_DEPTH: Final = 2
_TABLE_LENGTH: Final = 500_000
_TABLE_ROWS: Final = 200
_TABLE_COLUMNS: Final = 40
_CELL_LENGTH: Final = 300

PreviewKind: TypeAlias = Literal["markdown", "code", "tree", "table", "image", "text", "binary"]

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
_EXTENSIONS: Final = {
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
    #: The number of lines shown, and the number of all lines.
    shown: int
    lines: int
    is_cut: bool


class JsonNode(Struct, frozen=True):
    """A node of a JSON tree in document order: start of a branch, value or end of a branch."""

    step: Literal["open", "value", "close", "cut"]
    key: str = ""
    #: One of `object`, `list`, `string`, `number`, `word`.
    type: str = ""
    text: str = ""
    count: int = 0
    is_open: bool = False


class TablePreview(Struct, frozen=True):
    """The beginning of a table."""

    head: list[str]
    rows: list[list[str]]
    #: Whether there are more rows, and more columns.
    more_rows: bool
    more_columns: bool


class ResourcePreview(Struct, frozen=True, kw_only=True):
    """The preview of a resource."""

    kind: PreviewKind
    excerpt: Excerpt | None = None
    nodes: list[JsonNode] | None = None
    table: TablePreview | None = None
    #: Why a simpler preview is shown.
    problem: str = ""
    #: The excerpt as sanitised HTML; None if the template renders it.
    html: Markup | None = None


async def preview_of(resource: Resource, content: bytes) -> ResourcePreview:
    """Return the preview of a resource."""
    if not resource.is_text:
        return ResourcePreview(kind="binary" if image_type(content) is None else "image")
    return await text_preview(resource.mime_type, resource.name, content.decode("utf-8", "replace"))


async def text_preview(mime_type: str, name: str, text: str) -> ResourcePreview:
    """Return the preview of a text of a MIME type."""
    # In a thread: hostile text can be slow to render.
    return await asyncio.to_thread(_text_preview, mime_type, name, text)


async def markdown_of(excerpt: Excerpt) -> Markup:
    """Convert an excerpt from Markdown to sanitised HTML."""
    return await asyncio.to_thread(lambda: Markup(markdown(excerpt.text)))


def _text_preview(mime_type: str, name: str, text: str) -> ResourcePreview:
    kind = _essence(mime_type)
    if kind in _MARKDOWN:
        excerpt = excerpt_of(text)
        return ResourcePreview(kind="markdown", excerpt=excerpt, html=Markup(markdown(excerpt.text)))
    if kind in _TABLES:
        return _table_preview(text, _TABLES[kind])
    if _is_json(kind) and len(text) <= _TREE_LENGTH:
        return _tree_preview(text)
    language = _language(kind, name)
    excerpt = excerpt_of(text)
    if not language:
        return ResourcePreview(kind="text", excerpt=excerpt)
    html = f'<pre class="code"><code>{Highlighter().highlight(excerpt.text, language)}</code></pre>'
    return ResourcePreview(kind="code", excerpt=excerpt, html=Markup(html))


def _essence(mime_type: str) -> str:
    return mime_type.partition(";")[0].strip().lower()


def _is_json(kind: str) -> bool:
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def _language(kind: str, name: str) -> str:
    if _is_json(kind):
        return "json"
    if kind in _LANGUAGES:
        return _LANGUAGES[kind]
    return _EXTENSIONS.get(name.lower().rpartition(".")[2], "")


def excerpt_of(text: str, lines: int = PREVIEW_LINES, length: int = PREVIEW_LENGTH) -> Excerpt:
    """Return the first lines of a text."""
    total = text.count("\n") + (not text.endswith("\n"))
    shown = "\n".join(text.split("\n", lines)[:lines]) if total > lines else text
    if len(shown) > length:
        # Cut at the end of a line, unless that removes more than half.
        end = shown.rfind("\n", length // 2, length)
        shown = shown[: end if end > 0 else length]
    is_cut = len(shown) < len(text)
    return Excerpt(shown, shown.count("\n") + 1 if is_cut else total, total, is_cut)


# Images

#: The signatures of the image types that are shown.
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def image_type(content: bytes) -> str | None:
    """Return the MIME type of a raster image by its signature, or None for anything else."""
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    if content[4:8] == b"ftyp" and content[8:12] in (b"avif", b"avis"):
        return "image/avif"
    return None


# JSON


class _RawNumber(str):
    """A number as written in the source, so that the tree does not change its format."""

    __slots__ = ()


class _Members(list[tuple[str, Any]]):
    """The members of an object, including duplicate names."""


def _tree_preview(text: str) -> ResourcePreview:
    try:
        value = json.loads(
            text,
            parse_int=_RawNumber,
            parse_float=_RawNumber,
            parse_constant=_RawNumber,
            object_pairs_hook=_Members,
        )
    except (ValueError, RecursionError) as error:
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        problem = f"This is not valid JSON{where}, so it is shown as plain text."
        return ResourcePreview(kind="text", excerpt=excerpt_of(text), problem=problem)
    return ResourcePreview(kind="tree", nodes=list(_limit_nodes(_nodes("", value, 0))))


def _limit_nodes(nodes: Iterator[JsonNode]) -> Iterator[JsonNode]:
    """Yield at most the maximum number of nodes, and close every open branch."""
    depth = 0
    for at, node in enumerate(nodes):
        if at == _TREE_NODES:
            yield JsonNode("cut")
            yield from (JsonNode("close") for _ in range(depth))
            return
        depth += {"open": 1, "close": -1}.get(node.step, 0)
        yield node


def _nodes(key: str, value: Any, depth: int) -> Iterator[JsonNode]:
    if not isinstance(value, list):
        yield JsonNode("value", key, *_scalar(value))
        return
    is_object = isinstance(value, _Members)
    if not value:
        yield JsonNode("value", key, "word", "{}" if is_object else "[]")
        return
    yield JsonNode(
        "open",
        key,
        "object" if is_object else "list",
        count=len(value),
        is_open=depth < _TREE_OPEN_DEPTH and len(value) <= 100,
    )
    if depth >= _TREE_DEPTH:
        yield JsonNode("cut")
    else:
        members = value if is_object else ((str(at), item) for at, item in enumerate(value))
        for name, item in members:
            yield from _nodes(name[:_CELL_LENGTH], item, depth + 1)
    yield JsonNode("close")


def _scalar(value: Any) -> tuple[str, str]:
    if isinstance(value, _RawNumber):
        return "number", value[:_CELL_LENGTH]
    if isinstance(value, str):
        return "string", _clip(value)
    return "word", json.dumps(value)


def _clip(text: str) -> str:
    return text if len(text) <= _CELL_LENGTH else text[:_CELL_LENGTH] + "…"


# Tables


def _table_preview(text: str, delimiter: str) -> ResourcePreview:
    first = text[:5000].partition("\n")[0]
    if delimiter == "," and first.count(";") > first.count(","):
        # Spreadsheets use semicolons where the comma is the decimal separator.
        delimiter = ";"
    rows: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text[:_TABLE_LENGTH], newline=""), delimiter=delimiter):
            rows.append(row)
            if len(rows) > _TABLE_ROWS + 1:
                break
    except csv.Error as error:
        problem = f"This is not a valid table ({error}), so it is shown as plain text."
        return ResourcePreview(kind="text", excerpt=excerpt_of(text), problem=problem)
    if not rows:
        return ResourcePreview(kind="text", excerpt=excerpt_of(text))
    width = max(map(len, rows))
    columns = min(width, _TABLE_COLUMNS)
    shown = [[_clip(cell) for cell in row[:columns]] + [""] * (columns - len(row)) for row in rows]
    return ResourcePreview(
        kind="table",
        table=TablePreview(
            shown[0],
            shown[1 : _TABLE_ROWS + 1],
            len(rows) > _TABLE_ROWS + 1 or len(text) > _TABLE_LENGTH,
            width > columns,
        ),
    )
