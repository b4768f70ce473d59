"""Text and binary resources, a resource template, and a resource that changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from dittybag.protocol.argument_schemas import NoArguments
from dittybag.protocol.features import ResourceDefinition, ResourceTemplateDefinition
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import Annotations
from tests.everything import media_samples

WATCHED: Final = "test://watched-resource"


def register(server: Server) -> None:
    server.add(
        ResourceDefinition(
            uri="test://static-text",
            name="static-text",
            title="Static text",
            description="A text that never changes",
            mime_type="text/plain",
            annotations=Annotations(audience=("user",), priority=0.5),
            read=lambda _ctx: "This is the content of the static text resource.",
        )
    )
    server.add(
        ResourceDefinition(
            uri="test://static-binary",
            name="static-binary",
            title="Static bytes",
            description="An image that never changes",
            mime_type="image/png",
            size=len(media_samples.PNG),
            read=lambda _ctx: media_samples.PNG,
        )
    )
    server.add(
        ResourceTemplateDefinition(
            uri_template="test://template/{id}/data",
            name="template",
            title="Data by id",
            description="One resource for each id",
            mime_type="application/json",
            read=_read_template,
            completions={"id": ("1", "12", "123", "200")},
        )
    )
    _register_watched(server)


def _read_template(variables: Mapping[str, str], ctx: Context) -> str:
    name = variables["id"]
    return json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"})


def _register_watched(server: Server) -> None:
    revision = 1

    server.add(
        ResourceDefinition(
            uri=WATCHED,
            name="watched-resource",
            title="Watched resource",
            description="A text that test_trigger_resource_update changes",
            mime_type="text/plain",
            read=lambda _ctx: f"Watched resource content, revision {revision}",
        )
    )

    @server.tool("test_trigger_resource_update", description="Changes the watched resource")
    def trigger_resource_update(arguments: NoArguments, ctx: Context) -> str:
        nonlocal revision
        revision += 1
        server.resource_updated(WATCHED)
        return f"Revision {revision}"
