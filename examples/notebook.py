"""A small MCP server: a notebook that lives as long as the process.

Run it with `python examples/notebook.py` and speak MCP to it on standard input and output, or add it to a
client. docs/guides/engine.md explains every part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from dittybag.protocol import (
    Context,
    PromptDefinition,
    ResourceTemplateDefinition,
    Server,
    ToolError,
    UnknownResource,
)
from dittybag.protocol.transports import stdio
from dittybag.protocol.types import PromptArgument, ToolAnnotations

notes: dict[str, str] = {"welcome": "This notebook forgets everything when it ends."}

server = Server("notebook", "1.0.0", instructions="Keeps short notes while you work.")


class AddNote(Struct):
    name: Annotated[str, Meta(pattern="^[a-z0-9-]+$", max_length=40, description="Lower case, like to-do")]
    text: Annotated[str, Meta(min_length=1, max_length=2000, description="What to remember")]


@server.tool("add_note", AddNote, description="Write a note", title="Write a note")
async def add_note(note: AddNote, ctx: Context) -> str:
    if note.name in notes:
        raise ToolError(f"There is a note called {note.name} already; choose another name")
    notes[note.name] = note.text
    server.resources_changed()
    return f"Noted: {note.name}"


class Count(Struct):
    notes: int
    characters: int


@server.tool(
    "count_notes",
    output=Count,
    description="How much has been written",
    annotations=ToolAnnotations(read_only_hint=True),
)
async def count_notes(arguments: object, ctx: Context) -> Count:
    return Count(len(notes), sum(map(len, notes.values())))


def read_note(variables: Mapping[str, str], ctx: Context) -> str:
    try:
        return notes[variables["name"]]
    except KeyError:
        raise UnknownResource(f"note://{variables['name']}") from None


server.add(
    ResourceTemplateDefinition(
        uri_template="note://{name}",
        name="note",
        description="A note",
        mime_type="text/plain",
        read=read_note,
        completions={"name": lambda typed, others: [name for name in notes if name.startswith(typed)]},
    )
)

server.add(
    PromptDefinition(
        name="summarise",
        description="Sum up all notes",
        arguments=(PromptArgument(name="style", description="How to write it", required=True),),
        run=lambda arguments, ctx: f"Sum up in a {arguments['style']} style:\n\n" + "\n".join(notes.values()),
        completions={"style": ["brief", "formal", "poetic"]},
    )
)

if __name__ == "__main__":
    stdio.run(server)
