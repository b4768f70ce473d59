"""A small MCP server: an in-memory notebook.

Run `python examples/notebook.py` and send MCP messages on standard input, or add it to an MCP client.
docs/guides/engine.md explains each part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import Meta, Struct

from dittybag.protocol.features import PromptDefinition, ResourceTemplateDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.transports import stdio
from dittybag.protocol.types import PromptArgument, ToolAnnotations
from dittybag.protocol.wire_errors import ToolError, UnknownResource

notes: dict[str, str] = {"welcome": "Notes are lost when the server stops."}

server = Server("notebook", "1.0.0", instructions="Stores short notes until the server stops.")


class AddNote(Struct):
    name: Annotated[
        str, Meta(pattern="^[a-z0-9-]+$", max_length=40, description="Lower case, for example to-do")
    ]
    text: Annotated[str, Meta(min_length=1, max_length=2000, description="Text of the note")]


@server.tool("add_note", AddNote, description="Add a note", title="Add a note")
async def add_note(note: AddNote, ctx: Context) -> str:
    if note.name in notes:
        raise ToolError(f"A note named {note.name} already exists; choose another name")
    notes[note.name] = note.text
    server.resources_changed()
    return f"Added note {note.name}"


class Count(Struct):
    notes: int
    characters: int


@server.tool(
    "count_notes",
    output=Count,
    description="Count the notes and their characters",
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
        description="Summarise all notes",
        arguments=(PromptArgument(name="style", description="Writing style", required=True),),
        run=lambda arguments, ctx: (
            f"Summarise in a {arguments['style']} style:\n\n" + "\n".join(notes.values())
        ),
        completions={"style": ["brief", "formal", "poetic"]},
    )
)

if __name__ == "__main__":
    stdio.run(server)
