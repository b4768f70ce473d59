"""The table of bad input: every tool, every argument, every kind of value it refuses, and the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import combinations, count, cycle, islice
from typing import Any, Final, NamedTuple

ALL: Final = "all"
MCPKG: Final = "mcpkg"
STORE: Final = "prompt-store"
TASKS: Final = "tasks"
PROFILES: Final = (ALL, MCPKG, STORE, TASKS)

#: What every database holds before the first call, as far as the profile has the tool.
SEEDS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("create_prompt", {"name": "taken", "content": "Taken"}),
    ("add_prompt", {"title": "Taken title", "content": "Taken"}),
    ("add_prompt", {"title": "Other title", "content": "Other"}),
    ("create_resource", {"name": "taken", "uri": "file:///taken.md", "content": "Taken"}),
    (
        "create_resource",
        {"name": "picture", "uri": "file:///taken.png", "content": "aGk=", "mime_type": "image/png"},
    ),
    ("task_create", {"title": "Taken"}),
]
#: Stands for the id of the seeded prompt of this title.
TAKEN_ID: Final = "id of Taken title"

MEGABYTES: Final = "x" * 5_000_000
#: Stands for an argument that is not sent.
ABSENT: Final = object()


class Bad(NamedTuple):
    """A value that an argument must not have, and what the answer says about it."""

    kind: str
    value: Any
    says: str


def label(argument: str) -> str:
    special = {"uri": "URI", "mime_type": "MIME type"}
    return special.get(argument, argument.capitalize().replace("_", " "))


def wrong(name: str, expected: str, *values: tuple[Any, str]) -> list[Bad]:
    return [Bad(f"type: {kind}", value, f"{name} must be {expected}, not {kind}") for value, kind in values]


def text(argument: str, *more: Bad) -> list[Bad]:
    name = label(argument)
    return [
        *more,
        Bad("NUL", "a\0b", f"{name} must not contain NUL characters"),
        surrogate(argument),
        *not_text(argument),
    ]


def not_text(argument: str) -> list[Bad]:
    values = ((7, "the number 7"), (True, "true"), (["x"], "an array"), ({"x": "y"}, "an object"))
    return wrong(label(argument), "a string", *values)


def surrogate(argument: str, value: Any = "a\ud800b", path: str = "") -> Bad:
    says = f"{label(argument)}{path} must be valid Unicode text (it holds half a surrogate pair)"
    return Bad("lone surrogate", value, says)


def address(argument: str) -> list[Bad]:
    """What no address can be. Any other text is the address of nothing, which is no violation."""
    return [surrogate(argument), *not_text(argument)]


def integer(argument: str, *more: Bad) -> list[Bad]:
    values: list[tuple[Any, str]] = [("7", "a string"), (1.5, "the number 1.5"), (False, "false")]
    return [*more, *wrong(label(argument), "an integer", *values, ([], "an array"), ({}, "an object"))]


def bounded(argument: str, least: int, most: int | None = None) -> list[Bad]:
    name = label(argument)
    low = [Bad(f"{n}", n, f"{name} must be at least {least}, not {n}") for n in (least - 1, -(2**63) - 1)]
    if most is None:
        return integer(argument, *low)
    high = [Bad(f"{n}", n, f"{name} must be at most {most}, not {n}") for n in (most + 1, 2**64)]
    return integer(argument, *low, *high)


def not_an_array(argument: str) -> list[Bad]:
    values = (("x", "a string"), (7, "the number 7"), (True, "true"), ({"x": "y"}, "an object"))
    return wrong(label(argument), "an array", *values)


def control(argument: str) -> list[Bad]:
    says = f"{label(argument)} must not contain control characters"
    characters = [Bad(f"control character {char!r}", f"a{char}b", says) for char in "\n\t\x1b\x7f"]
    return [*characters, Bad("blank", "  ", f"{label(argument)} must not be blank")]


def name_of(noun: str) -> list[Bad]:
    def refused(kind: str, value: str) -> Bad:
        says = f"{noun} name '{value}' contains invalid characters. Allowed: a-z, A-Z, 0-9, -, _, ."
        return Bad(kind, value, says)

    length = f"{noun} name must be 1-255 characters"
    return [
        refused("blank", "test prompt"),
        Bad("empty", "", length),
        Bad("over-long", "x" * 256, length),
        refused("slash", "a/b"),
        refused("colon", "a:b"),
        refused("control character", "a\x07b"),
        refused("line break at the end", "a\n"),
        refused("emoji", "🎒"),
        refused("right-to-left", "שלום"),
        refused("combining", "e\u0301"),
        refused("NUL", "a\0b"),
        surrogate("name"),
        *not_text("name"),
    ]


STORE_TITLE: Final = text(
    "title",
    Bad("empty", "", "Title must be 1-200 characters"),
    Bad("over-long", "x" * 201, "Title must be 1-200 characters"),
    Bad("over-long emoji", "🎒" * 201, "Title must be 1-200 characters"),
    *control("title"),
)
PROMPT_CONTENT: Final = text(
    "content",
    Bad("empty", "", "Content must not be empty"),
    Bad("a byte too long", "x" * 1048577, "Content must be at most 1048576 bytes, it has 1048577"),
    Bad("too long in UTF-8", "é" * 524289, "Content must be at most 1048576 bytes, it has 1048578"),
    Bad("5 MB", MEGABYTES, "Content must be at most 1048576 bytes, it has 5000000"),
)
RESOURCE_CONTENT: Final = text(
    "content",
    Bad("a byte too long", "x" * 4194305, "Content must be at most 4194304 bytes, it has 4194305"),
    Bad("5 MB", MEGABYTES, "Content must be at most 4194304 bytes, it has 5000000"),
)
DESCRIPTION: Final = text(
    "description",
    Bad("over-long", "x" * 4001, "Description must be at most 4000 characters, it has 4001"),
    Bad("over-long emoji", "🎒" * 4001, "Description must be at most 4000 characters, it has 4001"),
)


def _tag(kind: str, value: str) -> Bad:
    rule = "contains invalid characters. Use only letters, numbers, dash, and underscore."
    return Bad(kind, ["fine", value], f"Tag '{value}' {rule}")


TAGS: Final = [
    _tag("blank", "invalid tag!"),
    Bad("empty tag", [""], "Tag '' must be 1-50 characters"),
    Bad("over-long tag", ["x" * 51], f"Tag '{'x' * 51}' must be 1-50 characters"),
    Bad("clipped tag", ["x" * 100], f"Tag '{'x' * 60}...' must be 1-50 characters"),
    Bad("too many", [f"tag-{n}" for n in range(51)], "Tags must be at most 50, there are 51"),
    _tag("control character", "a\x07b"),
    _tag("line break at the end", "tag\n"),
    _tag("emoji", "🎒"),
    _tag("right-to-left", "תג"),
    _tag("a letter that is ASCII in lower case", "\u212a"),
    _tag("a digit that is not ASCII", "٣"),
    _tag("NUL", "a\0b"),
    surrogate("tags", ["fine", "a\udc00b"], "[1]"),
    Bad("type of an item", ["fine", 7], "Tags[1] must be a string, not the number 7"),
    Bad("null item", ["fine", None], "Tags[1] must be a string, not null"),
    Bad(
        "three wrong tags",
        ["a b", "fine", "", 7],
        f"{_tag('', 'a b').says}; Tag '' must be 1-50 characters; Tags[3] must be a string, not the number 7",
    ),
    *not_an_array("tags"),
]


def _uri(kind: str, value: str) -> Bad:
    rule = "it needs a scheme, as in file:///notes.md, and no blanks or control characters"
    return Bad(kind, value, f"URI '{value}' is not a valid URI: {rule}")


URI: Final = [
    _uri("no scheme", "notes.md"),
    _uri("blank", "foo bar"),
    _uri("blank after a scheme", "file:///a b"),
    _uri("digit first", "1file:///a"),
    _uri("colon first", "://a"),
    _uri("line break", "file:///a\nb"),
    _uri("line break at the end", "file:///a\n"),
    _uri("control character", "file:///a\x7fb"),
    _uri("NUL", "file:///a\0b"),
    Bad("empty", "", "URI must be 1-2048 characters"),
    Bad("over-long", "file:///" + "x" * 2041, "URI must be 1-2048 characters"),
    surrogate("uri", "file:///a\ud800"),
    *not_text("uri"),
]


def _mime(kind: str, value: str) -> Bad:
    return Bad(kind, value, f"MIME type '{value}' is not valid: it must look like text/plain")


MIME_TYPE: Final = [
    _mime("no slash", "x"),
    _mime("empty", ""),
    _mime("no subtype", "text/"),
    _mime("no type", "/plain"),
    _mime("blank", "text plain"),
    _mime("line break at the end", "text/plain\n"),
    _mime("emoji", "text/🎒"),
    _mime("NUL", "text/a\0b"),
    surrogate("mime_type", "text/\ud800"),
    *not_text("mime_type"),
]
DECLARED: Final = [
    Bad(
        "name that no template can use",
        [{"name": "a b"}],
        "Argument name 'a b' must be a letter or _, then letters, digits or _, at most 100",
    ),
    Bad("one name twice", [{"name": "x"}, {"name": "x"}], "Argument 'x' is declared twice"),
    Bad("too many", [{"name": f"x{n}"} for n in range(51)], "Arguments must be at most 50, there are 51"),
    *not_an_array("arguments"),
    Bad("item is no object", ["x"], "Arguments[0] must be an object, not a string"),
    Bad("item without name", [{}], "Arguments[0].name is required"),
    Bad("type of a name", [{"name": 7}], "Arguments[0].name must be a string, not the number 7"),
    Bad(
        "type of required",
        [{"name": "x", "required": "yes"}],
        "Arguments[0].required must be true or false, not a string",
    ),
    surrogate("arguments", [{"name": "\ud800"}], "[0].name"),
]

TASK_TITLE: Final = text(
    "title",
    Bad("empty", "", "Title must be between 1 and 500 characters"),
    Bad("over-long", "x" * 501, "Title must be between 1 and 500 characters"),
    Bad("over-long emoji", "🎒" * 501, "Title must be between 1 and 500 characters"),
    *control("title"),
)
PROJECT: Final = text(
    "project",
    Bad("over-long", "x" * 101, "Project must be at most 100 characters"),
    *control("project"),
)
PRIORITY: Final = integer(
    "priority",
    *(
        Bad(f"out of bounds: {value}", value, "Priority must be between 1 and 5")
        for value in (0, 6, -1, 2**63)
    ),
)


def one_of(argument: str, choices: str, *values: str) -> list[Bad]:
    says = f"{label(argument)} must be one of {choices}"
    wrong_types = [bad.value for bad in not_text(argument)]
    refused = [*values, "", "🎒", "תג", "a\0b", "a\n", *wrong_types]
    return [*(Bad(f"unknown: {value!r}", value, says) for value in refused), surrogate(argument)]


ENERGY: Final = one_of("energy", "light, medium, deep", "heavy", "DEEP", " deep")
TIME_ESTIMATE: Final = text(
    "time_estimate",
    Bad("empty", "", "Time estimate must be between 1 and 50 characters"),
    Bad("over-long", "x" * 51, "Time estimate must be between 1 and 50 characters"),
    *control("time_estimate"),
)
NOTES: Final = text(
    "notes",
    Bad("over-long", "x" * 100001, "Notes must be at most 100000 characters"),
    Bad("5 MB", MEGABYTES, "Notes must be at most 100000 characters"),
)
DUE_DATE: Final = [
    *(
        Bad(
            f"no date: {value!r}",
            value,
            "Due date must be an ISO 8601 date or date-time, as in 2026-03-01 or 2026-03-01T17:00:00Z",
        )
        for value in (
            "tomorrow",
            "2026-02-30",
            "2026-13-01",
            "2026-03-01T25:00:00Z",
            "2026-03-01 17:00",
            "0000-01-01",
            "01.03.2026",
            "2026-03-01\n",
            "٢٠٢٦-٠٣-٠١",
            "📅",
            "2026-03-01\0",
        )
    ),
    surrogate("due_date"),
    *not_text("due_date"),
]
SHOW_COMPLETED: Final = wrong(
    "Show completed",
    "true or false",
    ("yes", "a string"),
    (1, "the number 1"),
    ([True], "an array"),
    ({}, "an object"),
)
QUERY: Final = text("query", Bad("over-long", "x" * 1001, "Query must be at most 1000 characters"))
FILTER: Final = [
    Bad("empty", [], "Tags must have at least 1 item, it has 0"),
    Bad("too many", ["fine"] * 51, "Tags must be at most 50, there are 51"),
    Bad("type of an item", ["fine", 7], "Tags[1] must be a string, not the number 7"),
    surrogate("tags", ["a\ud800b"], "[0]"),
    *not_an_array("tags"),
]
KIND: Final = [
    Bad(
        f"unknown: {shown}",
        value,
        f'Kind must be one of "project", "prompt", "resource", "task", not {shown}',
    )
    for value, shown in (
        ("tag", '"tag"'),
        ("", '""'),
        ("🎒", '"🎒"'),
        ("a\0b", '"a\\u0000b"'),
        (7, "7"),
        ([], "[]"),
    )
]
KINDS: Final = [
    Bad("unknown", ["prompt", "x"], 'Kinds[1] must be one of "prompt", "resource", "task", not "x"'),
    Bad("type of an item", [7], 'Kinds[0] must be one of "prompt", "resource", "task", not 7'),
    Bad("empty", [], "Kinds must have at least 1 item, it has 0"),
    *not_an_array("kinds"),
]


class Tool(NamedTuple):
    """One tool as some profiles show it: arguments it would accept, and what each of them must not be."""

    name: str
    profiles: tuple[str, ...]
    error_format: Callable[[list[tuple[str, str]]], str]
    good: dict[str, Any]
    required: tuple[str, ...]
    bad: dict[str, list[Bad]]


def prose_error(found: list[tuple[str, str]]) -> str:
    return "Error: " + "; ".join(says for _, says in found)


def task(found: list[tuple[str, str]]) -> str:
    return "Validation error: " + "; ".join(says for _, says in found)


def store(found: list[tuple[str, str]]) -> str:
    codes = {_CODES.get(argument, "INVALID_INPUT") for argument, _ in found}
    return failure(codes.pop() if len(codes) == 1 else "INVALID_INPUT", "; ".join(says for _, says in found))


_CODES: Final = {"title": "INVALID_TITLE", "tags": "INVALID_TAG"}


def failure(code: str, message: str) -> str:
    """An error of the prompt store, written as JavaScript writes it."""
    error = {"code": code, "message": message}
    return json.dumps({"error": error}, separators=(",", ":"), ensure_ascii=False)


def _tools() -> Iterator[Tool]:
    prompt = {"content": PROMPT_CONTENT, "description": DESCRIPTION}
    by_name = {"name": address("name")}
    create, update = {"name": name_of("Prompt")} | prompt, by_name | prompt
    declared = {"arguments": DECLARED}
    fresh, taken = {"name": "fresh", "content": "x"}, {"name": "taken", "content": "x"}
    needed: tuple[str, ...] = ("name", "content")
    yield Tool("create_prompt", (MCPKG,), prose_error, fresh, needed, create)
    yield Tool("create_prompt", (ALL,), prose_error, fresh, needed, create | declared)
    yield Tool("update_prompt", (MCPKG,), prose_error, taken, ("name",), update)
    yield Tool("delete_prompt", (MCPKG,), prose_error, {"name": "taken"}, ("name",), by_name)
    yield Tool("delete_prompt", (ALL,), prose_error, {"name": "taken"}, (), by_name)

    resource = {"content": RESOURCE_CONTENT, "mime_type": MIME_TYPE, "description": DESCRIPTION}
    create, update = {"name": name_of("Resource"), "uri": URI} | resource, by_name | resource
    needed = ("name", "uri", "content")
    title = {"title": STORE_TITLE}
    # A resource may have none, which is what an empty one means.
    no_title_or = {"title": [bad for bad in STORE_TITLE if bad.kind != "empty"]}
    yield Tool("create_resource", (MCPKG,), prose_error, FRESH_RESOURCE, needed, create)
    yield Tool("create_resource", (ALL,), prose_error, FRESH_RESOURCE, needed, create | no_title_or)
    yield Tool("update_resource", (MCPKG,), prose_error, taken, ("name",), update)
    yield Tool("update_resource", (ALL,), prose_error, taken, ("name",), update | no_title_or)
    yield Tool("delete_resource", (MCPKG, ALL), prose_error, {"name": "taken"}, ("name",), by_name)

    by_id = {"id": address("id")}
    own = {"id": TAKEN_ID}
    good: dict[str, Any] = {"title": "Fresh", "content": "x", "tags": ["fresh"]}
    stored = {"title": STORE_TITLE, "content": PROMPT_CONTENT, "tags": TAGS}
    page = {"limit": bounded("limit", 1, 100), "offset": bounded("offset", 0)}
    here = (STORE, ALL)
    yield Tool("add_prompt", here, store, good, ("title", "content"), stored)
    yield Tool("list_prompts", here, store, {}, (), page)
    yield Tool("get_prompt", here, store, own, ("id",), by_id)
    yield Tool("update_prompt", (STORE,), store, own | good, ("id", "title", "content"), by_id | stored)
    every = title | prompt | {"tags": TAGS} | declared
    yield Tool("update_prompt", (ALL,), store, own | good, (), by_id | every)
    yield Tool("update_prompt", (ALL,), prose_error, taken, (), by_name | every)
    yield Tool("delete_prompt", (STORE,), store, own, ("id",), by_id)
    yield Tool("delete_prompt", (ALL,), store, own, (), by_id)
    yield Tool("search_prompts", here, store, {"query": "x"}, ("query",), {"query": QUERY} | page)
    yield Tool("filter_by_tags", here, store, {"tags": ["x"]}, ("tags",), {"tags": FILTER} | page)
    yield Tool("list_tags", here, store, {}, (), {})

    by_number = {"task_id": integer("task_id")}
    fields = {
        "title": TASK_TITLE,
        "project": PROJECT,
        "priority": PRIORITY,
        "energy": ENERGY,
        "time_estimate": TIME_ESTIMATE,
        "notes": NOTES,
        "due_date": DUE_DATE,
    }
    filters = {
        "project": address("project"),
        "priority": PRIORITY,
        "show_completed": SHOW_COMPLETED,
        "limit": bounded("limit", 1, 1000),
        "offset": bounded("offset", 0),
    }
    where = one_of("fields", "title, notes, both", "content", "Title")
    group = one_of("group_by", "project, priority, status", "energy", "Project")
    here = (TASKS, ALL)
    yield Tool("task_create", here, task, {"title": "Fresh"}, ("title",), fields)
    yield Tool("task_list", here, task, {}, (), filters)
    yield Tool("task_update", here, task, {"task_id": 1, "priority": 4}, ("task_id",), by_number | fields)
    for name in ("task_get", "task_complete", "task_delete"):
        yield Tool(name, here, task, {"task_id": 1}, ("task_id",), by_number)
    yield Tool("task_search", here, task, {"query": "x"}, ("query",), {"query": QUERY, "fields": where})
    yield Tool("task_stats", here, task, {}, (), {"group_by": group})

    limit = {"limit": bounded("limit", 1, 100)}
    before = {"before": integer("before")}
    search = {"query": [Bad("empty", "", "Query must not be empty"), *QUERY], "kinds": KINDS} | limit
    yield Tool("search", (ALL,), store, {"query": "x"}, ("query",), search)
    yield Tool("list_changes", (ALL,), store, {}, (), {"kind": KIND} | by_id | limit | before)
    yield Tool("undo_change", (ALL,), store, {"change": 1}, ("change",), {"change": integer("change")})


FRESH_RESOURCE: Final = {"name": "fresh", "uri": "file:///fresh", "content": "Fresh"}
TOOLS: Final = list(_tools())


class Refused(NamedTuple):
    """A call, and the whole text it is refused with."""

    profile: str
    tool: str
    case: str
    arguments: dict[str, Any]
    says: str


def _every_bad(tool: Tool) -> dict[str, list[Bad]]:
    """The bad values of each argument; for a required one, its absence and a null as well."""
    types = {str: "a string", int: "an integer", list: "an array"}
    table = {argument: list(bad) for argument, bad in tool.bad.items()}
    for argument in tool.required:
        name = label(argument)
        table[argument] += [
            Bad("missing", ABSENT, f"{name} is required"),
            *wrong(name, types[type(tool.good[argument])], (None, "null")),
        ]
    return table


def _with(good: dict[str, Any], bad: dict[str, Bad]) -> dict[str, Any]:
    """Arguments with bad values first and in reverse: the answer has the schema's order all the same."""
    values = {argument: bad[argument].value for argument in reversed(bad)}
    return {
        argument: value for argument, value in {**values, **good, **values}.items() if value is not ABSENT
    }


def _refused_by(tool: Tool) -> dict[str, tuple[dict[str, Any], str]]:
    """For each case its arguments and the answer: one, two and three bad values at once."""
    table = _every_bad(tool)
    chosen = [{argument: bad} for argument, values in table.items() for bad in values]
    for size in (2, 3):
        together = list(combinations(table, size))
        # Other kinds of values each time, and often enough that even few arguments meet in many of them.
        for turn, arguments in enumerate(islice(cycle(together), max(12, len(together)))):
            turns = zip(arguments, count(turn, 3), strict=False)
            chosen.append({name: table[name][place % len(table[name])] for name, place in turns})
    if len(tool.required) > 1:
        chosen.append({name: Bad("missing", ABSENT, f"{label(name)} is required") for name in tool.required})
    return {
        " & ".join(f"{name}: {bad.kind}" for name, bad in wrongs.items()): (
            _with(tool.good, wrongs),
            tool.error_format([(name, bad.says) for name, bad in wrongs.items()]),
        )
        for wrongs in chosen
    }


def _others() -> Iterator[tuple[tuple[str, ...], str, str, dict[str, Any], str]]:
    """What depends on several arguments or on what is stored, and the contracts' own examples."""
    here: tuple[str, ...] = (MCPKG, ALL)
    exists = "already exists in project 'default'"
    same_name = {"name": "taken", "content": "x"}
    yield here, "create_prompt", "duplicate name", same_name, f"Error: Prompt 'taken' {exists}"
    same_name = FRESH_RESOURCE | same_name
    yield here, "create_resource", "duplicate name", same_name, f"Error: Resource 'taken' {exists}"
    same_uri = FRESH_RESOURCE | {"uri": "file:///taken.md"}
    says = f"Error: A resource with the URI 'file:///taken.md' {exists}"
    yield here, "create_resource", "duplicate URI", same_uri, says

    png = FRESH_RESOURCE | {"mime_type": "image/png"}
    base64 = "Content must be valid base64, because image/png is a binary type"
    for case, content in (
        ("other characters", "not base64!"),
        ("half a group", "abc"),
        ("text after its end", "aGk=aGk="),
        ("the alphabet of URLs", "_-8="),
        ("emoji", "🎒🎒🎒🎒"),
    ):
        yield here, "create_resource", f"base64 with {case}", png | {"content": content}, f"Error: {base64}"
    three = png | {"name": "", "content": "abc", "description": "\0"}
    says = f"Resource name must be 1-255 characters; {base64}; Description must not contain NUL characters"
    yield here, "create_resource", "invalid base64 & two more", three, f"Error: {says}"
    big = png | {"content": "AAAA" * 1_666_667}
    says = "Error: Content must be at most 4194304 bytes, it has 5000001"
    yield here, "create_resource", "5 MB in base64", big, says
    kept_type = {"name": "picture", "content": "not base64!"}
    yield here, "update_resource", "base64 for the stored type", kept_type, f"Error: {base64}"
    new_type = {"name": "taken", "content": "abc", "mime_type": "image/png"}
    yield here, "update_resource", "base64 for a new type", new_type, f"Error: {base64}"

    taken = {"name": "taken"}
    says = "Error: Nothing to update: give content or description"
    yield (MCPKG,), "update_prompt", "nothing to change", taken, says
    says = "Error: Nothing to update: give content, mime_type or description"
    yield here, "update_resource", "nothing to change", taken, says
    for noun in ("Prompt", "Resource"):
        for name in ("nobody", "", "test prompt", "a\n", "a\0b", "🎒", "שלום", "' OR 1=1 --", "x" * 256):
            case = f"name of nothing: {name[:40]!r}"
            says = f"Error: {noun} '{name}' does not exist in project 'default'"
            yield here, f"update_{noun.lower()}", case, {"name": name, "content": "x"}, says
            yield here, f"delete_{noun.lower()}", case, {"name": name}, says

    here = (STORE, ALL)
    same = {"title": "Taken title", "content": "x"}
    says = failure("DUPLICATE_TITLE", "A prompt with this title already exists")
    yield here, "add_prompt", "duplicate title", same, says
    same = {"id": TAKEN_ID, "title": "Other title", "content": "x"}
    yield here, "update_prompt", "duplicate title", same, says
    says = failure("NOT_FOUND", "Prompt not found")
    nil = "00000000-0000-0000-0000-000000000000"
    for given in ("", "x", nil, "a\0b", "🎒", "שלום", "' OR 1=1 --", MEGABYTES):
        case = f"id of nothing: {given[:40]!r}"
        yield here, "get_prompt", case, {"id": given}, says
        yield here, "delete_prompt", case, {"id": given}, says
        yield here, "update_prompt", case, {"id": given, "title": "Fresh", "content": "x"}, says

    here = (ALL,)
    same = {"name": "taken", "title": "Taken title"}
    says = f"Error: A prompt with the title 'Taken title' {exists}"
    yield here, "update_prompt", "duplicate title by name", same, says
    says = "Nothing to update: give title, content, description, tags or arguments"
    yield here, "update_prompt", "nothing to change by name", taken, f"Error: {says}"
    own = {"id": TAKEN_ID}
    yield here, "update_prompt", "nothing to change by id", own, failure("INVALID_INPUT", says)
    for tool in ("update_prompt", "delete_prompt"):
        says = "Error: Give either id or name: which prompt do you mean?"
        yield here, tool, "no address", {}, says
        yield here, tool, "null for an address", {"id": None, "name": None, "content": "x"}, says
        says = "Error: Give either id or name, not both"
        yield here, tool, "two addresses", {"id": TAKEN_ID, "name": "taken", "content": "x"}, says
    for number in (999999, 0, -1, 2**63, 10**30):
        says = failure("NOT_FOUND", f"Change {number} not found")
        yield here, "undo_change", f"unknown change: {number}", {"change": number}, says

    here = (TASKS, ALL)
    says = "Validation error: Title must be between 1 and 500 characters; Priority must be between 1 and 5"
    yield here, "task_create", "the contract's example", {"title": "", "priority": 6}, says
    says = "Validation error: Nothing to update: give at least one field"
    yield here, "task_update", "nothing to change", {"task_id": 1}, says
    for number in (7, 0, -1, 2**63, -(2**63) - 1, 10**30):
        case, says = f"unknown task: {number}", f"Task {number} not found"
        for tool in ("task_get", "task_complete", "task_delete"):
            yield here, tool, case, {"task_id": number}, says
        yield here, "task_update", case, {"task_id": number, "priority": 4}, says


def refusals() -> Iterator[Refused]:
    """Every call that must be refused."""
    for tool in TOOLS:
        for profile in tool.profiles:
            two_in_one = profile == ALL and tool.name in {"update_prompt", "delete_prompt"}
            suffix = f" by {next(iter(tool.bad))}" if two_in_one else ""
            for case, (arguments, says) in _refused_by(tool).items():
                yield Refused(profile, tool.name, case + suffix, arguments, says)
    for profiles, name, case, arguments, says in _others():
        for profile in profiles:
            yield Refused(profile, name, case, arguments, says)
