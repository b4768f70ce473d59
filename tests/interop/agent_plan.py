"""The calls of every tool of the profile `agent` that clients make, each with the expected answer."""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tests.contracts.library_fixtures import write_files

Json = dict[str, Any]

PNG: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGD4DwABBAEAX+XDSwAAAABJRU5ErkJggg=="
)
PDF: Final = b64encode(b"%PDF-1.7\n" + bytes(range(256))).decode()
SOUND: Final = b64encode(b"ID3" + bytes(range(256))).decode()
#: Too long for a result of the usual size.
LARGE: Final = random.Random(1).randbytes(20_000)
NOTES: Final = "# Notes\r\n日本語 👩\u200d👧 e\u0301\n"
#: A prompt of a library, with messages of several roles.
INTERVIEW: Final = """---
name: Interview
inputs:
  position:
    type: string
    description: What the candidate applies for
---
user:
Ask about {{ position }}.

assistant:
Why {{ position }}?
"""


def write_library(home: Path) -> None:
    """Write the library that the calls use into Dittybag's home folder."""
    write_files(home / "libraries" / "team", {"interview.prompty": INTERVIEW})


class Refusal(Struct, frozen=True):
    """An answer that is an error."""

    code: str
    #: Part of the message.
    message: str
    #: Whether the arguments are valid by the schema of the tool.
    fits_schema: bool = True


class Contents(Struct, frozen=True):
    """An answer of `read`: the content, and members of its description."""

    blocks: list[Json]
    described: Json


class AgentCall(Struct, frozen=True):
    """A call of a tool with the expected answer: of structured content, these members; of text, a part."""

    tool: str
    arguments: Json
    expected: Json | Contents | Refusal | str
    #: The user's answer if the server asks for something.
    answer: Json = {}


def _text(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def _malformed(tool: str, message: str, **arguments: Any) -> AgentCall:
    return AgentCall(tool, arguments, Refusal("INVALID_INPUT", message, fits_schema=False))


def _unknown(tool: str, ref: str, *, near: str | None = None) -> AgentCall:
    message = f"There is nothing called '{ref}'" if near is None else f"Did you mean {near}?"
    return AgentCall(tool, {"ref": ref}, Refusal("NOT_FOUND", message))


_PROMPTS: Final = [
    AgentCall(
        "save_prompt",
        {"name": "greet", "content": "Hello {{ who }}", "tags": ["Mail"]},
        {
            "ref": "greet",
            "created": True,
            "version": 1,
            "arguments": ["who"],
            "note": "the variable {{ who }} is now an argument; verbatim: true keeps the braces as text",
        },
    ),
    AgentCall(
        "save_prompt",
        {"name": "greet", "content": "Dear {{ who }}", "title": "Greeting", "if_version": 1},
        {"ref": "greet", "created": False, "version": 2},
    ),
    AgentCall("save_prompt", {"name": "long", "content": "word " * 3000, "verbatim": True}, {"version": 1}),
    AgentCall(
        "use_prompt",
        {"ref": "greet", "arguments": {"who": "Ann"}},
        {"ref": "greet", "messages": [{"role": "user", "text": "Dear Ann"}], "characters": 8},
    ),
    AgentCall(
        "use_prompt",
        {"ref": "team:interview", "arguments": {"position": "pilot"}},
        {
            "messages": [
                {"role": "user", "text": "Ask about pilot."},
                {"role": "assistant", "text": "Why pilot?"},
            ]
        },
    ),
    AgentCall(
        "use_prompt",
        {"ref": "long", "offset": 14_990, "max_tokens": 1000},
        {"messages": [{"role": "user", "text": "word " * 2}], "characters": 15_000, "offset": 14_990},
    ),
    AgentCall("use_prompt", {"ref": "long", "max_tokens": 1000}, {"characters": 15_000}),
    AgentCall("read", {"ref": "greet"}, Contents(_text("Dear {{ who }}"), {"kind": "prompt", "version": 2})),
    AgentCall("read", {"ref": "team:interview"}, Contents([], {"kind": "library_prompt"})),
]
#: Calls of clients that ask their users for what is missing.
_FORMS: Final = [
    AgentCall(
        "use_prompt",
        {"ref": "greet"},
        {"messages": [{"role": "user", "text": "Dear Bea"}]},
        {"action": "accept", "content": {"who": "Bea"}},
    ),
    AgentCall(
        "use_prompt",
        {"ref": "team:interview", "arguments": {"position": None}},
        Refusal("INVALID_INPUT", "position (What the candidate applies for); the user declined"),
        {"action": "decline"},
    ),
]
_RESOURCES: Final = [
    AgentCall(
        "save_resource",
        {"uri": "file:///notes.md", "content": NOTES},
        {"ref": "file:///notes.md", "created": True, "version": 1},
    ),
    AgentCall(
        "save_resource",
        {"uri": "file:///notes.md", "title": "Meeting", "if_version": 1},
        {"created": False, "version": 2},
    ),
    AgentCall("save_resource", {"uri": "file:///dot.png", "base64": PNG}, {"created": True}),
    AgentCall("save_resource", {"uri": "file:///paper.pdf", "base64": PDF}, {"created": True}),
    AgentCall(
        "save_resource",
        {"uri": "file:///bell.mp3", "base64": SOUND, "mime_type": "audio/mpeg", "name": "bell"},
        {"created": True},
    ),
    AgentCall(
        "save_resource",
        {"uri": "file:///large.bin", "base64": b64encode(LARGE).decode()},
        {"created": True},
    ),
    AgentCall(
        "read",
        {"ref": "file:///notes.md"},
        Contents(_text(NOTES), {"mime_type": "text/markdown", "title": "Meeting", "characters": len(NOTES)}),
    ),
    AgentCall(
        "read",
        {"ref": "notes.md", "offset": 9},
        Contents(_text(NOTES[9:]), {"kind": "resource", "offset": 9}),
    ),
    AgentCall(
        "read",
        {"ref": "file:///dot.png"},
        Contents([{"type": "image", "data": PNG, "mimeType": "image/png"}], {"mime_type": "image/png"}),
    ),
    AgentCall(
        "read",
        {"ref": "file:///bell.mp3"},
        Contents([{"type": "audio", "data": SOUND, "mimeType": "audio/mpeg"}], {"name": "bell"}),
    ),
    AgentCall(
        "read",
        {"ref": "file:///paper.pdf"},
        Contents(
            [
                {
                    "type": "resource",
                    "resource": {"uri": "file:///paper.pdf", "mimeType": "application/pdf", "blob": PDF},
                }
            ],
            {"bytes": 265},
        ),
    ),
    AgentCall(
        "read",
        {"ref": "file:///large.bin"},
        Contents(
            [
                {
                    "type": "resource_link",
                    "uri": "file:///large.bin",
                    "name": "large.bin",
                    "mimeType": "application/octet-stream",
                    "size": 20_000,
                }
            ],
            {"bytes": 20_000, "more": "read with offset=0 to get it as base64 in pieces"},
        ),
    ),
    AgentCall(
        "read",
        {"ref": "file:///large.bin", "offset": 19_000},
        Contents(_text(b64encode(LARGE[19_000:]).decode()), {"encoding": "base64", "bytes": 20_000}),
    ),
]
#: The number of the change by which `task_next` claims a task.
_FENCE: Final = 16
_TASKS: Final = [
    AgentCall(
        "task_add",
        {"tasks": [{"title": "Call the bank", "notes": "Loan", "due_date": "2030-01-31"}, {"title": "Rest"}]},
        {
            "added": [
                {
                    "ref": "task:1",
                    "title": "Call the bank",
                    "priority": 3,
                    "due_date": "2030-01-31",
                    "status": "todo",
                },
                {"ref": "task:2", "title": "Rest", "priority": 3, "status": "todo"},
            ]
        },
    ),
    AgentCall(
        "task_update",
        {"ref": "task:2", "priority": 5, "project": "elsewhere", "due_date": "tomorrow"},
        {"ref": "task:2", "title": "Rest", "priority": 5, "project": "elsewhere"},
    ),
    AgentCall("task_list", {"limit": 1}, {"total": 2, "more": "1 more; offset=1", "next_offset": 1}),
    AgentCall("task_update", {"ref": "1", "status": "done"}, {"ref": "task:1", "status": "done"}),
    AgentCall("read", {"ref": "task:1"}, Contents(_text("Loan"), {"kind": "task", "status": "done"})),
    AgentCall("task_next", {"project": "elsewhere", "lease": "1h"}, {"fence": _FENCE}),
    AgentCall("task_next", {"wait": "1s"}, {"task": None}),
    AgentCall("task_next", {"ref": "task:1"}, Refusal("TASK_NOT_READY", "it is done")),
    AgentCall("task_update", {"ref": "task:2", "priority": 1}, Refusal("TASK_CLAIMED", "Task 2 is held by")),
    AgentCall("task_update", {"ref": "task:2", "fence": _FENCE, "comment": "Nearly"}, {"status": "doing"}),
    AgentCall(
        "task_release", {"ref": "task:2", "fence": _FENCE, "comment": "Over to you"}, {"status": "todo"}
    ),
    AgentCall("task_done", {"ref": "task:2", "fence": _FENCE}, Refusal("CLAIM_LOST", "is no longer valid")),
    AgentCall("task_done", {"ref": "task:2", "status": "review"}, {"status": "review"}),
]
_HISTORY: Final = [
    AgentCall("search", {"query": "meetings 日本語"}, {"total": 1}),
    AgentCall("search", {"query": "dear", "kinds": ["prompt"], "limit": 1}, {"total": 1}),
    AgentCall("search", {"query": "greetng"}, {"hits": [], "total": 0, "suggestion": "greeting"}),
    AgentCall(
        "delete", {"ref": "Greeting"}, {"deleted": "prompt:greet", "kind": "prompt", "title": "Greeting"}
    ),
    AgentCall("history", {"ref": "greet", "limit": 2}, {}),
    AgentCall("undo", {"ref": "greet"}, {}),
    AgentCall("history", {"kind": "task", "limit": 1}, {}),
    AgentCall(
        "read", {"ref": "change:3"}, Contents([], {"kind": "change", "action": "created prompt greet"})
    ),
]
_PACKS: Final = [
    AgentCall("context", {"query": "greeting", "budget": 500}, "## Found prompt greet"),
]
_PROJECTS: Final = [
    AgentCall("project", {}, {"current": "default", "why": "the project of this server"}),
    AgentCall("project", {"action": "create", "name": "elsewhere"}, {"created": "elsewhere"}),
]
_SWITCH: Final = [
    AgentCall("project", {"action": "switch", "name": "elsewhere"}, {"current": "elsewhere"}),
    AgentCall("search", {"query": "greeting"}, {"hits": [], "total": 0}),
    _unknown("read", "greet"),
    AgentCall("project", {"action": "switch"}, {"current": "default"}),
]
#: Without a session, nothing can be remembered for the next call.
_NO_SWITCH: Final = [
    AgentCall(
        "project",
        {"action": "switch", "name": "elsewhere"},
        Refusal("NOT_ALLOWED", "This request belongs to no session"),
    ),
]
_ERRORS: Final = [
    *[_unknown(tool, "greeet", near="greet") for tool in ("read", "use_prompt", "delete", "history", "undo")],
    *[_unknown(tool, "task:99") for tool in ("read", "use_prompt", "delete", "task_update", "undo")],
    *[_unknown(tool, "task:99") for tool in ("task_next", "task_done", "task_release")],
    _malformed("read", "ref is required"),
    _malformed("use_prompt", "ref is required", arguments={}),
    _malformed("save_prompt", "content is required", name="x"),
    _malformed("save_resource", "uri is required", content="x"),
    _malformed("delete", "ref is required"),
    _malformed("task_add", "tasks is required"),
    _malformed("task_update", "ref is required", status="done"),
    _malformed("task_done", "ref is required"),
    _malformed("task_release", "ref is required"),
    _malformed("task_next", "leases is not an argument; did you mean lease?", leases="1h"),
    _malformed("undo", "ref is required", force=True),
    _malformed("context", "budgets is not an argument; did you mean budget?", budgets=500),
    _malformed("search", "limits is not an argument; did you mean limit?", query="x", limits=5),
    _malformed("read", "max_token is not an argument; did you mean max_tokens?", ref="greet", max_token=5),
    _malformed(
        "use_prompt", "argument is not an argument; did you mean arguments?", ref="greet", argument={}
    ),
    _malformed("save_prompt", "contents is not an argument; did you mean content?", name="x", contents="x"),
    _malformed(
        "save_resource", "mimetype is not an argument; did you mean mime_type?", uri="a:b", mimetype="x"
    ),
    _malformed("delete", "reff is not an argument; did you mean ref?", ref="greet", reff="greet"),
    _malformed("task_add", "did you mean due_date?", tasks=[{"title": "x", "duedate": "fri"}]),
    _malformed("task_list", "projects is not an argument; did you mean project?", projects="Home"),
    _malformed("task_update", "titel is not an argument; did you mean title?", ref="task:1", titel="x"),
    _malformed("history", "actors is not an argument; did you mean actor?", actors="x"),
    _malformed("undo", "forced is not an argument; did you mean force?", ref="greet", forced=True),
    _malformed("project", "actions is not an argument; did you mean action?", actions="list"),
    _malformed("search", "limit must be an integer", query="x", limit="many"),
    _malformed("task_list", "priority must be at most 5", priority=6),
    _malformed("project", "action must be one of", action="delete"),
    AgentCall(
        "save_prompt",
        {"name": "greet", "content": "x", "if_version": 1},
        Refusal("CONFLICT", "has version 3, not the one that you gave"),
    ),
    AgentCall(
        "save_resource",
        {"uri": "file:///notes.md", "content": "x", "if_version": 0},
        Refusal("CONFLICT", "has version 2, not the one that you gave"),
    ),
    AgentCall(
        "task_add",
        {"tasks": [{"title": "x", "due_date": "someday"}]},
        Refusal("INVALID_INPUT", "due_date 'someday' is not a date"),
    ),
    AgentCall("undo", {"ref": "change:3"}, Refusal("CONFLICT", "The same items were changed later")),
    AgentCall("delete", {"ref": "team:interview"}, Refusal("NOT_ALLOWED", "Library prompts are files")),
    AgentCall("project", {"action": "switch", "name": "nowhere"}, Refusal("INVALID_INPUT", "does not exist")),
]


#: One call of each tool, and one error of each kind, for clients that start a new process for every call.
SHORT_CALLS: Final = [
    *_PROJECTS[1:],
    _PROMPTS[0],
    AgentCall("use_prompt", {"ref": "greet", "arguments": {"who": "Ann"}}, {"characters": 9}),
    AgentCall("save_resource", {"uri": "file:///dot.png", "base64": PNG}, {"created": True}),
    AgentCall(
        "read",
        {"ref": "file:///dot.png"},
        Contents([{"type": "image", "data": PNG, "mimeType": "image/png"}], {"mime_type": "image/png"}),
    ),
    AgentCall("search", {"query": "hello", "kinds": ["prompt"]}, {"total": 1}),
    AgentCall("context", {"query": "hello", "budget": 500}, "## Found prompt greet"),
    _TASKS[0],
    AgentCall("task_list", {"limit": 1}, {"total": 2, "next_offset": 1}),
    AgentCall("task_update", {"ref": "task:2", "status": "done"}, {"ref": "task:2", "status": "done"}),
    AgentCall("task_next", {"project": "elsewhere", "wait": "1s"}, {"task": None}),
    AgentCall("task_done", {"ref": "task:1", "comment": "Called"}, {"ref": "task:1", "status": "done"}),
    AgentCall("task_release", {"ref": "task:1"}, Refusal("TASK_NOT_READY", "nobody works on it")),
    AgentCall("delete", {"ref": "task:1"}, {"deleted": "task:1", "kind": "task", "title": "Call the bank"}),
    AgentCall("history", {"ref": "task:1", "limit": 1}, {"more": "older changes: before=9"}),
    AgentCall("undo", {"ref": "task:1"}, {"by": "change:10"}),
    _unknown("read", "greeet", near="greet"),
    AgentCall(
        "use_prompt",
        {"ref": "team:interview", "arguments": {"position": None}},
        Refusal("INVALID_INPUT", "Missing required argument: position (What the candidate applies for)"),
    ),
    _malformed("task_update", "ref is required", status="done"),
    _malformed("task_add", "did you mean due_date?", tasks=[{"title": "x", "duedate": "fri"}]),
    AgentCall(
        "save_prompt",
        {"name": "greet", "content": "x", "if_version": 2},
        Refusal("CONFLICT", "has version 1, not the one that you gave"),
    ),
]


def agent_calls(*, sessions: bool) -> list[AgentCall]:
    """Return the calls, in order. `sessions`: whether the client has a session."""
    calls = [*_PROJECTS, *_PROMPTS, *_FORMS, *_RESOURCES, *_TASKS, *_HISTORY, *_PACKS]
    return [*calls, *(_SWITCH if sessions else _NO_SWITCH), *(_ERRORS if sessions else _ERRORS[:-1])]
