"""Previews of resources by type. A preview never contains anything that a browser would execute."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from minijinja import Markup
from msgspec import Struct

from dittybag.domain.resources import Resource
from dittybag.protocol.lazy_asyncio import asyncio
from dittybag.web.highlight import languages
from dittybag.web.markdown_html import code, markdown

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
#: Subtypes and extensions of languages whose names differ.
_LANGUAGES: Final = {
    "cc": "cpp",
    "h": "c",
    "hpp": "cpp",
    "htm": "html",
    "httpd-php": "php",
    "jsonl": "json",
    "kt": "kotlin",
    "ndjson": "json",
    "patch": "diff",
    "shellscript": "bash",
}


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
    kind = mime_type.partition(";")[0].strip().lower()
    if kind in _MARKDOWN:
        excerpt = excerpt_of(text)
        return ResourcePreview(kind="markdown", excerpt=excerpt, html=Markup(markdown(excerpt.text)))
    if kind in _TABLES:
        return _table_preview(text, _TABLES[kind])
    if _is_json(kind) and len(text) <= _TREE_LENGTH:
        return _tree_preview(text)
    language = _language(kind, name)
    if not language:
        return _plain_preview(text)
    excerpt = excerpt_of(text)
    return ResourcePreview(kind="code", excerpt=excerpt, html=Markup(code(excerpt.text, language)))


def _plain_preview(text: str, problem: str = "") -> ResourcePreview:
    return ResourcePreview(kind="text", excerpt=excerpt_of(text), problem=problem)


def _is_json(kind: str) -> bool:
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def _language(kind: str, name: str) -> str:
    """Return the language of a type such as `text/x-python`, or else of a file name; empty if unknown."""
    subtype = kind.rpartition("/")[2].removeprefix("x-").rpartition("+")[2]
    extension = name.lower().rpartition(".")[2]
    candidates = (_LANGUAGES.get(item, item) for item in (subtype, extension))
    return next((language for language in candidates if language in languages()), "")


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

#: The signatures of the raster images that are shown.
_SIGNATURES: Final = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8[79]a)"
    rb"|(?P<webp>RIFF.{4}WEBP)|(?P<avif>.{4}ftypavi[fs])",
    re.DOTALL,
)


def image_type(content: bytes) -> str | None:
    """Return the MIME type of a raster image by its signature, or None for anything else."""
    found = _SIGNATURES.match(content)
    return None if found is None else f"image/{found.lastgroup}"


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
        return _plain_preview(text, f"This is not valid JSON{where}, so it is shown as plain text.")
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
        return _plain_preview(text, f"This is not a valid table ({error}), so it is shown as plain text.")
    if not rows:
        return _plain_preview(text)
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
