"""The table of bad input: for every tool and argument, the values it refuses and the error message."""

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

#: Calls that fill every database before the first test, if the profile has the tool.
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
#: Replaced with the id of the prompt that has this title.
TAKEN_ID: Final = "id of Taken title"

MEGABYTES: Final = "x" * 5_000_000
#: The value of an argument that is not sent.
ABSENT: Final = object()
INVALID_INPUT: Final = "INVALID_INPUT"


class Bad(NamedTuple):
    """A value that an argument must not have, and the message about it."""

    kind: str
    value: Any
    message: str
    #: The code in the format of the prompt store; by default that of the argument.
    code: str = ""


def label(argument: str) -> str:
    """Return the argument as the domain's messages name it: a single word is capitalised."""
    return argument if "_" in argument else argument.capitalize()


def wrong_type(argument: str, expected: str, *values: tuple[Any, str]) -> list[Bad]:
    return [
        Bad(f"type: {kind}", value, f"{argument} must be {expected}, not {kind}") for value, kind in values
    ]


def text(argument: str, *more: Bad) -> list[Bad]:
    return [
        *more,
        Bad("NUL", "a\0b", f"{label(argument)} must not contain NUL characters"),
        surrogate(argument),
        *not_text(argument),
    ]


def not_text(argument: str, expected: str = "a string") -> list[Bad]:
    values = ((7, "the number 7"), (True, "true"), (["x"], "an array"), ({"x": "y"}, "an object"))
    return wrong_type(argument, expected, *values)


def surrogate(argument: str, value: Any = "a\ud800b", path: str = "") -> Bad:
    message = f"{argument}{path} must be valid Unicode text (it contains a lone surrogate)"
    return Bad("lone surrogate", value, message)


def address(argument: str) -> list[Bad]:
    """Return the values that are not valid as an id or a name. Any other text is valid but finds nothing."""
    return [surrogate(argument), *not_text(argument)]


def integer(argument: str, *more: Bad, expected: str = "an integer") -> list[Bad]:
    values: list[tuple[Any, str]] = [("7", "a string"), (1.5, "the number 1.5"), (False, "false")]
    return [*more, *wrong_type(argument, expected, *values, ([], "an array"), ({}, "an object"))]


def bounded_integer(argument: str, minimum: int, maximum: int | None = None) -> list[Bad]:
    low = [
        Bad(f"{n}", n, f"{argument} must be at least {minimum}, not {n}") for n in (minimum - 1, -(2**63) - 1)
    ]
    if maximum is None:
        return integer(argument, *low)
    high = [Bad(f"{n}", n, f"{argument} must be at most {maximum}, not {n}") for n in (maximum + 1, 2**64)]
    return integer(argument, *low, *high, expected=f"an integer from {minimum} to {maximum}")


def not_an_array(argument: str) -> list[Bad]:
    values = (("x", "a string"), (7, "the number 7"), (True, "true"), ({"x": "y"}, "an object"))
    return [bad._replace(code=INVALID_INPUT) for bad in wrong_type(argument, "an array", *values)]


def not_texts(argument: str) -> list[Bad]:
    message = f"{argument}[1] must be a string, not the number 7"
    return [
        Bad("type of an item", ["fine", 7], message, INVALID_INPUT),
        surrogate(argument, ["fine", "a\udc00b"], "[1]"),
        *not_an_array(argument),
    ]


def not_one_of(argument: str, choices: str, *values: Any) -> list[Bad]:
    """Return values that are not among the choices; the message shows them as JSON."""
    shown = [(value, json.dumps(value, ensure_ascii=False)) for value in values]
    return [
        Bad(f"unknown: {quoted}", value, f"{argument} must be one of {choices}, not {quoted}")
        for value, quoted in shown
    ]


def not_one_line(argument: str) -> list[Bad]:
    message = f"{label(argument)} must not contain control characters"
    characters = [Bad(f"control character {char!r}", f"a{char}b", message) for char in "\n\t\x1b\x7f"]
    return [*characters, Bad("blank", "  ", f"{label(argument)} must not be blank")]


def title(maximum: int, message: str) -> list[Bad]:
    too_long = [
        Bad("over-long", "x" * (maximum + 1), message),
        Bad("over-long emoji", "🎒" * (maximum + 1), message),
    ]
    return text("title", Bad("empty", "", message), *too_long)


def content(maximum: int, *more: Bad) -> list[Bad]:
    message = f"Content must be at most {maximum} bytes, but has "
    too_long = [Bad(f"{count} bytes", "x" * count, f"{message}{count}") for count in (maximum + 1, 5_000_000)]
    return text("content", *more, *too_long)


def invalid_name(noun: str) -> list[Bad]:
    def refused(kind: str, value: str) -> Bad:
        message = f"{noun} name '{value}' contains invalid characters. Allowed: a-z, A-Z, 0-9, -, _, ."
        return Bad(kind, value, message)

    length = f"{noun} name must be 1-255 characters"
    return [
        refused("blank", "test prompt"),
        Bad("empty", "", length),
        Bad("over-long", "x" * 256, length),
        refused("slash", "a/b"),
        refused("control character", "a\x07b"),
        refused("line break at the end", "a\n"),
        refused("emoji", "🎒"),
        refused("NUL", "a\0b"),
        surrogate("name"),
        *not_text("name"),
    ]


STORE_TITLE: Final = title(200, "Title must be 1-200 characters")
#: An empty title is valid for a resource: it means no title.
RESOURCE_TITLE: Final = [*(bad for bad in STORE_TITLE if bad.kind != "empty"), *not_one_line("title")]
PROMPT_CONTENT: Final = content(
    1048576,
    Bad("empty", "", "Content must not be empty"),
    Bad("too long in UTF-8", "é" * 524289, "Content must be at most 1048576 bytes, but has 1048578"),
)
RESOURCE_CONTENT: Final = content(4194304)
DESCRIPTION: Final = text(
    "description",
    Bad("over-long", "x" * 4001, "Description must be at most 4000 characters, but has 4001"),
    Bad("over-long emoji", "🎒" * 4001, "Description must be at most 4000 characters, but has 4001"),
)


def _tag(kind: str, value: str) -> Bad:
    rule = "contains invalid characters. Use only letters, numbers, dash, and underscore."
    return Bad(kind, ["fine", value], f"Tag '{value}' {rule}")


TAGS: Final = [
    _tag("blank", "invalid tag!"),
    Bad("empty tag", [""], "Tag '' must be 1-50 characters"),
    Bad("over-long tag", ["x" * 51], f"Tag '{'x' * 51}' must be 1-50 characters"),
    Bad("clipped tag", ["x" * 100], f"Tag '{'x' * 60}...' must be 1-50 characters"),
    Bad("too many", [f"tag-{n}" for n in range(51)], "At most 50 tags are allowed, not 51", INVALID_INPUT),
    _tag("line break at the end", "tag\n"),
    _tag("a letter that is ASCII in lower case", "\u212a"),
    _tag("a digit that is not ASCII", "٣"),
    _tag("NUL", "a\0b"),
    Bad("null item", ["fine", None], "tags[1] must be a string, not null", INVALID_INPUT),
    Bad(
        "three wrong tags",
        ["a b", "fine", "", 7],
        f"{_tag('', 'a b').message}; Tag '' must be 1-50 characters; "
        "tags[3] must be a string, not the number 7",
        INVALID_INPUT,
    ),
    *not_texts("tags"),
]


def _uri(kind: str, value: str) -> Bad:
    rule = "it needs a scheme, as in file:///notes.md, and must not contain spaces or control characters"
    return Bad(kind, value, f"URI '{value}' is not a valid URI: {rule}")


URI: Final = [
    _uri("no scheme", "notes.md"),
    _uri("blank after a scheme", "file:///a b"),
    _uri("digit first", "1file:///a"),
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
        "name that is not a valid variable",
        [{"name": "a b"}],
        "Argument name 'a b' must be a letter or _ followed by at most 99 letters, digits or _",
    ),
    Bad("duplicate name", [{"name": "x"}, {"name": "x"}], "Argument 'x' is declared twice"),
    Bad("too many", [{"name": f"x{n}"} for n in range(51)], "At most 50 arguments are allowed, not 51"),
    *not_an_array("arguments"),
    Bad("item that is not an object", ["x"], "arguments[0] must be an object, not a string"),
    Bad("item without name", [{}], "arguments[0].name is required"),
    Bad("type of a name", [{"name": 7}], "arguments[0].name must be a string, not the number 7"),
    surrogate("arguments", [{"name": "\ud800"}], "[0].name"),
]

TASK_TITLE: Final = title(500, "Title must be between 1 and 500 characters")
PROJECT: Final = text("project", Bad("over-long", "x" * 101, "Project must be at most 100 characters"))
PRIORITY: Final = integer(
    "priority",
    *(
        Bad(f"out of bounds: {value}", value, "Priority must be between 1 and 5")
        for value in (0, 6, -1, 2**63)
    ),
    expected="an integer from 1 to 5",
)


def not_a_choice(argument: str, message: str, *values: str) -> list[Bad]:
    wrong_types = [bad.value for bad in not_text(argument)]
    refused = [*values, "", "🎒", "תג", "a\0b", "a\n", *wrong_types]
    return [*(Bad(f"unknown: {value!r}", value, message) for value in refused), surrogate(argument)]


ENERGY: Final = not_a_choice("energy", "Energy must be one of light, medium, deep", "heavy", "DEEP", " deep")
TIME_ESTIMATE: Final = text(
    "time_estimate",
    Bad("over-long", "x" * 51, "time_estimate must be at most 50 characters"),
)
NOTES: Final = text(
    "notes",
    Bad("over-long", "ä" * 524289, "Notes must be at most 1048576 bytes, but have 1048578"),
    Bad("5 MB", MEGABYTES, "Notes must be at most 1048576 bytes, but have 5000000"),
)
NOT_A_DATE: Final = [
    *(
        Bad(
            f"not a date: {value!r}",
            value,
            "due_date must be an ISO 8601 date or date-time, as in 2026-03-01 or 2026-03-01T17:00:00Z",
        )
        for value in (
            "tomorrow",
            "2026-02-30",
            "2026-03-01T25:00:00Z",
            "2026-03-01 17:00",
            "0000-01-01",
            "2026-03-01\n",
            "٢٠٢٦-٠٣-٠١",
            "2026-03-01\0",
        )
    ),
    surrogate("due_date"),
]
DUE_DATE: Final = [*NOT_A_DATE, *not_text("due_date")]
NEW_DUE_DATE: Final = [*NOT_A_DATE, *not_text("due_date", "a string or null")]
SHOW_COMPLETED: Final = wrong_type(
    "show_completed",
    "true or false",
    ("yes", "a string"),
    (1, "the number 1"),
    ([True], "an array"),
    ({}, "an object"),
)
QUERY: Final = text("query", Bad("over-long", "x" * 1001, "Query must be at most 1000 characters"))
FILTER: Final = [
    Bad("empty", [], "tags must have at least 1 item, not 0", INVALID_INPUT),
    Bad("too many", ["fine"] * 51, "At most 50 tags are allowed, not 51", INVALID_INPUT),
    *not_texts("tags"),
]
KIND: Final = not_one_of("kind", '"project", "prompt", "resource", "task"', "tag", "", "🎒", "a\0b", 7, [])
_KIND_NAMES: Final = '"library_prompt", "prompt", "resource", "task"'
KINDS: Final = [
    Bad("unknown", ["prompt", "x"], f'kinds[1] must be one of {_KIND_NAMES}, not "x"'),
    Bad("type of an item", [7], f"kinds[0] must be one of {_KIND_NAMES}, not 7"),
    Bad("empty", [], "kinds must have at least 1 item, not 0"),
    *not_an_array("kinds"),
]


FINISHED: Final = not_one_of("status", '"done", "dropped", "review"', "todo", "", 7, [])
NEW_TASKS: Final = [
    Bad("empty", [], "tasks must have at least 1 item, not 0"),
    Bad("too many", [{"title": "x"}] * 201, "tasks must have at most 200 items, not 201"),
    Bad("type of an item", ["x"], "tasks[0] must be an object, not a string"),
    Bad("no title", [{}], "tasks[0].title is required"),
    Bad("key", [{"title": "x", "key": 7}], "tasks[0].key must be a string, not the number 7"),
    *not_an_array("tasks"),
]


class ToolCase(NamedTuple):
    """A tool in some profiles: arguments that it accepts, and the bad values of each."""

    name: str
    profiles: tuple[str, ...]
    error_format: Callable[[dict[str, Bad]], str]
    good: dict[str, Any]
    required: tuple[str, ...]
    bad: dict[str, list[Bad]]


def prose_error(found: dict[str, Bad]) -> str:
    return f"Error: {_messages(found)}"


def task(found: dict[str, Bad]) -> str:
    return f"Validation error: {_messages(found)}"


def store(found: dict[str, Bad]) -> str:
    codes = {bad.code or _CODES.get(argument, INVALID_INPUT) for argument, bad in found.items()}
    return failure(codes.pop() if len(codes) == 1 else INVALID_INPUT, _messages(found))


def _messages(found: dict[str, Bad]) -> str:
    return "; ".join(bad.message for bad in found.values())


_CODES: Final = {"title": "INVALID_TITLE", "tags": "INVALID_TAG"}


def failure(code: str, message: str) -> str:
    """Return an error of the prompt store in compact JSON."""
    error = {"code": code, "message": message}
    return json.dumps({"error": error}, separators=(",", ":"), ensure_ascii=False)


def _tools() -> Iterator[ToolCase]:
    prompt = {"content": PROMPT_CONTENT, "description": DESCRIPTION}
    by_name = {"name": address("name")}
    create, update = {"name": invalid_name("Prompt")} | prompt, by_name | prompt
    declared = {"arguments": DECLARED}
    fresh, taken = {"name": "fresh", "content": "x"}, {"name": "taken", "content": "x"}
    needed: tuple[str, ...] = ("name", "content")
    yield ToolCase("create_prompt", (MCPKG,), prose_error, fresh, needed, create)
    yield ToolCase("create_prompt", (ALL,), prose_error, fresh, needed, create | declared)
    yield ToolCase("update_prompt", (MCPKG,), prose_error, taken, ("name",), update)
    yield ToolCase("delete_prompt", (MCPKG,), prose_error, {"name": "taken"}, ("name",), by_name)
    yield ToolCase("delete_prompt", (ALL,), prose_error, {"name": "taken"}, (), by_name)

    resource = {"content": RESOURCE_CONTENT, "mime_type": MIME_TYPE, "description": DESCRIPTION}
    create, update = {"name": invalid_name("Resource"), "uri": URI} | resource, by_name | resource
    needed = ("name", "uri", "content")
    title = {"title": STORE_TITLE}
    no_title_or = {"title": RESOURCE_TITLE}
    yield ToolCase("create_resource", (MCPKG,), prose_error, FRESH_RESOURCE, needed, create)
    yield ToolCase("create_resource", (ALL,), prose_error, FRESH_RESOURCE, needed, create | no_title_or)
    yield ToolCase("update_resource", (MCPKG,), prose_error, taken, ("name",), update)
    yield ToolCase("update_resource", (ALL,), prose_error, taken, ("name",), update | no_title_or)
    yield ToolCase("delete_resource", (MCPKG, ALL), prose_error, {"name": "taken"}, ("name",), by_name)

    by_id = {"id": address("id")}
    own = {"id": TAKEN_ID}
    good: dict[str, Any] = {"title": "Fresh", "content": "x", "tags": ["fresh"]}
    stored = {"title": STORE_TITLE, "content": PROMPT_CONTENT, "tags": TAGS}
    page = {"limit": bounded_integer("limit", 1, 100), "offset": bounded_integer("offset", 0)}
    here = (STORE, ALL)
    yield ToolCase("add_prompt", here, store, good, ("title", "content"), stored)
    yield ToolCase("list_prompts", here, store, {}, (), page)
    yield ToolCase("get_prompt", here, store, own, ("id",), by_id)
    yield ToolCase("update_prompt", (STORE,), store, own | good, ("id", "title", "content"), by_id | stored)
    every = title | prompt | {"tags": TAGS} | declared
    yield ToolCase("update_prompt", (ALL,), store, own | good, (), by_id | every)
    yield ToolCase("update_prompt", (ALL,), prose_error, taken, (), by_name | every)
    yield ToolCase("delete_prompt", (STORE,), store, own, ("id",), by_id)
    yield ToolCase("delete_prompt", (ALL,), store, own, (), by_id)
    yield ToolCase("search_prompts", here, store, {"query": "x"}, ("query",), {"query": QUERY} | page)
    yield ToolCase("filter_by_tags", here, store, {"tags": ["x"]}, ("tags",), {"tags": FILTER} | page)
    yield ToolCase("list_tags", here, store, {}, (), {})

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
        "limit": bounded_integer("limit", 1, 1000),
        "offset": bounded_integer("offset", 0),
    }
    where = not_a_choice("fields", "fields must be one of title, notes, both", "content", "Title")
    group = not_a_choice(
        "group_by", "group_by must be one of project, priority, status, all", "energy", "Project"
    )
    here = (TASKS, ALL)
    yield ToolCase("task_create", here, task, {"title": "Fresh"}, ("title",), fields)
    yield ToolCase("task_list", here, task, {}, (), filters)
    changed = by_number | fields | {"due_date": NEW_DUE_DATE}
    yield ToolCase("task_update", here, task, {"task_id": 1, "priority": 4}, ("task_id",), changed)
    for name in ("task_get", "task_complete", "task_delete"):
        yield ToolCase(name, here, task, {"task_id": 1}, ("task_id",), by_number)
    yield ToolCase("task_search", here, task, {"query": "x"}, ("query",), {"query": QUERY, "fields": where})
    yield ToolCase("task_stats", here, task, {}, (), {"group_by": group})

    limit = {"limit": bounded_integer("limit", 1, 100)}
    before = {"before": integer("before")}
    search = {"query": QUERY, "kinds": KINDS}
    search |= limit | {"offset": bounded_integer("offset", 0)}
    yield ToolCase("search", (ALL,), store, {"query": "x"}, (), search)
    about = {"task": integer("task"), "query": QUERY, "files": not_texts("files")}
    budget = {"budget": bounded_integer("budget", 200, 50000)}
    yield ToolCase("context", (ALL,), store, {}, (), about | budget)
    ref = {"ref": [Bad("empty", "", "ref must not be empty"), *address("ref")]}
    piece = {
        "offset": bounded_integer("offset", 0),
        "max_tokens": bounded_integer("max_tokens", 1000, 100000),
    }
    values = {"arguments": wrong_type("arguments", "an object", ("x", "a string"), ([], "an array"))}
    yield ToolCase("read", (ALL,), store, {"ref": "taken"}, ("ref",), ref | piece)
    yield ToolCase("use_prompt", (ALL,), store, {"ref": "taken"}, ("ref",), ref | values | piece)
    claimed = ref | {"fence": bounded_integer("fence", 1), "comment": address("comment")}
    yield ToolCase("task_release", (ALL,), store, {"ref": "task:1"}, ("ref",), claimed)
    finished = claimed | {"status": FINISHED}
    yield ToolCase("task_done", (ALL,), store, {"ref": "task:1"}, ("ref",), finished)
    claim = {"project": address("project"), "labels": not_texts("labels")} | ref
    claim |= {"lease": address("lease"), "wait": address("wait")}
    yield ToolCase("task_next", (ALL,), store, {"labels": ["none"]}, (), claim)
    yield ToolCase("task_add", (ALL,), store, {"tasks": [{"title": "New"}]}, ("tasks",), {"tasks": NEW_TASKS})
    yield ToolCase("list_changes", (ALL,), store, {}, (), {"kind": KIND} | by_id | limit | before)
    yield ToolCase("undo_change", (ALL,), store, {"change": 1}, ("change",), {"change": integer("change")})


FRESH_RESOURCE: Final = {"name": "fresh", "uri": "file:///fresh", "content": "Fresh"}
TOOLS: Final = list(_tools())


class RefusedCall(NamedTuple):
    """A call that is refused, and the whole text of the error."""

    profile: str
    tool: str
    case: str
    arguments: dict[str, Any]
    message: str


def _every_bad(tool: ToolCase) -> dict[str, list[Bad]]:
    """Return the bad values of each argument; for required arguments also absence and null."""
    types = {str: "a string", int: "an integer", list: "an array"}
    table = {argument: list(bad) for argument, bad in tool.bad.items()}
    for argument in tool.required:
        shape_code = INVALID_INPUT if argument == "tags" else ""
        table[argument] += [
            Bad("missing", ABSENT, f"{argument} is required", shape_code),
            *(
                bad._replace(code=shape_code)
                for bad in wrong_type(argument, types[type(tool.good[argument])], (None, "null"))
            ),
        ]
    return table


def _with(good: dict[str, Any], bad: dict[str, Bad]) -> dict[str, Any]:
    """Return arguments with the bad values first, in reverse. The error lists them in schema order anyway."""
    values = {argument: bad[argument].value for argument in reversed(bad)}
    return {
        argument: value for argument, value in {**values, **good, **values}.items() if value is not ABSENT
    }


def _refused_by(tool: ToolCase) -> dict[str, tuple[dict[str, Any], str]]:
    """Return the arguments and the error of each case: one, two and three bad values together."""
    table = _every_bad(tool)
    chosen = [{argument: bad} for argument, values in table.items() for bad in values]
    for size in (2, 3):
        together = list(combinations(table, size))
        # Vary the values, and repeat often enough that even few arguments meet in many combinations.
        for turn, arguments in enumerate(islice(cycle(together), max(12, len(together)))):
            turns = zip(arguments, count(turn, 3), strict=False)
            chosen.append({name: table[name][index % len(table[name])] for name, index in turns})
    if len(tool.required) > 1:
        chosen.append({name: Bad("missing", ABSENT, f"{name} is required") for name in tool.required})
    return {
        " & ".join(f"{name}: {bad.kind}" for name, bad in wrongs.items()): (
            _with(tool.good, wrongs),
            tool.error_format(wrongs),
        )
        for wrongs in chosen
    }


def _others() -> Iterator[tuple[tuple[str, ...], str, str, dict[str, Any], str]]:
    """Yield cases that depend on several arguments or stored data, and the contracts' own examples."""
    here: tuple[str, ...] = (MCPKG, ALL)
    exists = "already exists in project 'default'"
    same_name = {"name": "taken", "content": "x"}
    yield here, "create_prompt", "duplicate name", same_name, f"Error: Prompt 'taken' {exists}"
    same_name = FRESH_RESOURCE | same_name
    yield here, "create_resource", "duplicate name", same_name, f"Error: Resource 'taken' {exists}"
    same_uri = FRESH_RESOURCE | {"uri": "file:///taken.md"}
    message = f"Error: A resource with the URI 'file:///taken.md' {exists}"
    yield here, "create_resource", "duplicate URI", same_uri, message

    png = FRESH_RESOURCE | {"mime_type": "image/png"}
    base64 = "Content must be valid base64, because image/png is a binary type"
    for case, content in (
        ("other characters", "not base64!"),
        ("half a group", "abc"),
        ("text after its end", "aGk=aGk="),
        ("the alphabet of URLs", "_-8="),
    ):
        yield here, "create_resource", f"base64 with {case}", png | {"content": content}, f"Error: {base64}"
    three = png | {"name": "", "content": "abc", "description": "\0"}
    message = f"Resource name must be 1-255 characters; {base64}; Description must not contain NUL characters"
    yield here, "create_resource", "invalid base64 & two more", three, f"Error: {message}"
    big = png | {"content": "AAAA" * 1_666_667}
    message = "Error: Content must be at most 4194304 bytes, but has 5000001"
    yield here, "create_resource", "5 MB in base64", big, message
    kept_type = {"name": "picture", "content": "not base64!"}
    yield here, "update_resource", "base64 for the stored type", kept_type, f"Error: {base64}"
    new_type = {"name": "taken", "content": "abc", "mime_type": "image/png"}
    yield here, "update_resource", "base64 for a new type", new_type, f"Error: {base64}"

    taken = {"name": "taken"}
    message = "Error: Nothing to update: give content or description"
    yield (MCPKG,), "update_prompt", "nothing to change", taken, message
    message = "Error: Nothing to update: give content, mime_type or description"
    yield here, "update_resource", "nothing to change", taken, message
    for noun in ("Prompt", "Resource"):
        for name in ("unknown", "", "test prompt", "a\n", "a\0b", "🎒", "שלום", "' OR 1=1 --", "x" * 256):
            case = f"name of nothing: {name[:40]!r}"
            message = f"Error: {noun} '{name}' does not exist in project 'default'"
            yield here, f"update_{noun.lower()}", case, {"name": name, "content": "x"}, message
            yield here, f"delete_{noun.lower()}", case, {"name": name}, message

    here = (STORE, ALL)
    same = {"title": "Taken title", "content": "x"}
    message = failure("DUPLICATE_TITLE", "A prompt with this title already exists")
    yield here, "add_prompt", "duplicate title", same, message
    same = {"id": TAKEN_ID, "title": "Other title", "content": "x"}
    yield here, "update_prompt", "duplicate title", same, message
    message = failure("NOT_FOUND", "Prompt not found")
    nil = "00000000-0000-0000-0000-000000000000"
    for given in ("", "x", nil, "a\0b", "🎒", "שלום", "' OR 1=1 --", MEGABYTES):
        case = f"id of nothing: {given[:40]!r}"
        yield here, "get_prompt", case, {"id": given}, message
        yield here, "delete_prompt", case, {"id": given}, message
        yield here, "update_prompt", case, {"id": given, "title": "Fresh", "content": "x"}, message

    here = (ALL,)
    same = {"name": "taken", "title": "Taken title"}
    message = f"Error: A prompt with the title 'Taken title' {exists}"
    yield here, "update_prompt", "duplicate title by name", same, message
    message = "Nothing to update: give title, content, description, tags or arguments"
    yield here, "update_prompt", "nothing to change by name", taken, f"Error: {message}"
    own = {"id": TAKEN_ID}
    yield here, "update_prompt", "nothing to change by id", own, failure("INVALID_INPUT", message)
    for tool in ("update_prompt", "delete_prompt"):
        message = "Error: Either id or name is required"
        yield here, tool, "no address", {}, message
        yield here, tool, "null for an address", {"id": None, "name": None, "content": "x"}, message
        message = "Error: Give either id or name, not both"
        yield here, tool, "two addresses", {"id": TAKEN_ID, "name": "taken", "content": "x"}, message
    for number in (999999, 0, -1, 2**63, 10**30):
        message = failure("NOT_FOUND", f"Change {number} not found")
        yield here, "undo_change", f"unknown change: {number}", {"change": number}, message

    here = (TASKS, ALL)
    message = "Validation error: Title must be between 1 and 500 characters; Priority must be between 1 and 5"
    yield here, "task_create", "the contract's example", {"title": "", "priority": 6}, message
    message = "Validation error: Nothing to update: give at least one field"
    yield here, "task_update", "nothing to change", {"task_id": 1}, message
    for number in (7, 0, -1, 2**63, -(2**63) - 1, 10**30):
        case, message = f"unknown task: {number}", f"Task {number} not found"
        for tool in ("task_get", "task_complete", "task_delete"):
            yield here, tool, case, {"task_id": number}, message
        yield here, "task_update", case, {"task_id": number, "priority": 4}, message


def refusals() -> Iterator[RefusedCall]:
    """Yield every call that must be refused."""
    for tool in TOOLS:
        for profile in tool.profiles:
            either_address = profile == ALL and tool.name in {"update_prompt", "delete_prompt"}
            suffix = f" by {next(iter(tool.bad))}" if either_address else ""
            for case, (arguments, message) in _refused_by(tool).items():
                yield RefusedCall(profile, tool.name, case + suffix, arguments, message)
    for profiles, name, case, arguments, message in _others():
        for profile in profiles:
            yield RefusedCall(profile, name, case, arguments, message)
