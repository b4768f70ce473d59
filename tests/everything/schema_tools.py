"""Tools that exercise input and output schemas."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.wire_errors import InvalidArguments, Violation


class Addends(Struct):
    a: int
    b: int


class Sum(Struct):
    sum: int


class Booking(Struct, forbid_unknown_fields=True):
    name: Annotated[str, Meta(min_length=1, max_length=20)]
    guests: Annotated[int, Meta(ge=1, le=12)]
    day: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    area: Literal["inside", "terrace"] = "inside"
    wishes: Annotated[list[str], Meta(max_length=3)] = []


class Region(Struct):
    region: Annotated[
        str,
        Meta(
            description="Repeated in the Mcp-Param-Region header over HTTP",
            extra_json_schema={"x-mcp-header": "Region"},
        ),
    ] = "none"


class Address(Struct):
    street: str | None = None
    city: str | None = None


class Contact(Struct, rename="camel", forbid_unknown_fields=True):
    name: str | None = None
    address: Address | None = None
    contact_method: Literal["phone", "email"] | None = None
    phone: str | None = None
    email: str | None = None


#: The exact schema that the suite expects in `tools/list`.
PERSON_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def register(server: Server) -> None:
    @server.tool("add", Addends, description="Adds two integers", output=Sum)
    def add(arguments: Addends, ctx: Context) -> Sum:
        return Sum(sum=arguments.a + arguments.b)

    @server.tool("book_table", Booking, description="Validates its arguments strictly")
    def book_table(arguments: Booking, ctx: Context) -> str:
        return f"A table {arguments.area} for {arguments.guests} on {arguments.day}, {arguments.name}"

    @server.tool(
        "test_x_mcp_header", Region, description="Has an argument that is repeated in an HTTP header"
    )
    def x_mcp_header(arguments: Region, ctx: Context) -> str:
        return f"region={arguments.region}"

    @server.tool(
        "json_schema_2020_12_tool",
        Contact,
        description="Shows a schema with composition, conditions and references",
        input_schema=PERSON_SCHEMA,
    )
    def json_schema_2020_12_tool(arguments: Contact, ctx: Context) -> str:
        # A struct cannot express the schema's conditions.
        needed, given = (
            ("phone", arguments.phone) if arguments.contact_method == "phone" else ("email", arguments.email)
        )
        if given is None:
            raise InvalidArguments("json_schema_2020_12_tool", [Violation(needed, "required", "is required")])
        return f"{arguments.name or 'Someone'} can be reached at {given}"
