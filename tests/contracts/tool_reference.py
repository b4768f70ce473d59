"""The reference page of the tools and the snapshots of their schemas, made from the tools themselves.

`python -m tests.contracts.tool_reference` writes them anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from dittybag.contracts.profiles import PROFILES, Profile
from dittybag.contracts.tool_specs import TOOLSETS, ToolSpec
from dittybag.protocol.argument_schemas import schema_of
from tests.wire import ROOT

PAGE = ROOT / "docs" / "reference" / "tools.md"
SNAPSHOTS = Path(__file__).with_name("tools")

HEAD = """\
# Tools

Made from the tools themselves by `python -m tests.contracts.tool_reference`; a test keeps it so.

`dittybag serve` shows all tools of the profile `all`. `--profile` chooses another face of the same store,
`--toolsets` narrows it to some of {toolsets}, and `--read-only` leaves out what is marked as writing.

Besides its text, every answer carries the same as `structuredContent`, where the protocol revision has that.
"""


def tool_list(profile: Profile) -> list[dict[str, Any]]:
    """The tools of a profile, with everything a client sees of them."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": schema_of(tool.arguments),
            "outputSchema": tool.output,
            "writes": tool.effect.writes,
            "destroys": tool.effect.destructive,
            "repeatable": tool.effect.idempotent,
            "toolset": tool.toolset,
        }
        for tool in profile.tools
    ]


def snapshot(profile: Profile) -> str:
    encoded = msgspec.json.encode(tool_list(profile), order="deterministic")
    return msgspec.json.format(encoded, indent=1).decode() + "\n"


def page() -> str:
    toolsets = ", ".join(f"`{name}`" for name in TOOLSETS)
    parts = [HEAD.format(toolsets=toolsets)]
    for profile in PROFILES.values():
        parts.append(f"\n## Profile `{profile.name}`\n")
        tools = f"{len(profile.tools)} tools, {_size(profile)} bytes of names, descriptions and input schemas"
        size = tools if profile.tools else "no tools, only prompts"
        parts.append(f"Calls itself `{profile.server_name}` {profile.server_version}; {size}.\n")
        parts += [_described(tool) for tool in profile.tools]
    return "\n".join(parts)


def _size(profile: Profile) -> int:
    shown = ("name", "description", "inputSchema")
    return len(msgspec.json.encode([{key: tool[key] for key in shown} for tool in tool_list(profile)]))


def _described(tool: ToolSpec[Any]) -> str:
    marks = [f"toolset `{tool.toolset}`"]
    if tool.effect.writes:
        marks.append("overwrites or deletes" if tool.effect.destructive else "writes")
    lines = [f"### `{tool.name}`\n", f"{tool.description}. ({', '.join(marks)})\n"]
    schema = schema_of(tool.arguments)
    required = schema.get("required", ())
    if schema["properties"]:
        lines += ["| argument | type | |", "|---|---|---|"]
    for name, field in schema["properties"].items():
        about = field.get("description", "")
        need = "required" if name in required else ""
        lines.append(f"| `{name}` | {_type(field)} | {'. '.join(part for part in (need, about) if part)} |")
    return "\n".join([*lines, ""])


def _type(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " \\| ".join(f"`{value}`" for value in field["enum"])
    kind = str(field["type"])
    if kind == "array":
        items = field["items"]
        return "array of objects" if items.get("type") == "object" else f"array of {_type(items)}"
    least, most = field.get("minimum", field.get("minLength")), field.get("maximum", field.get("maxLength"))
    if least is not None and most is not None:
        kind += f", {least} to {most}" + (" characters" if kind == "string" else "")
    if field.get("default") is not None and field["default"] != []:
        kind += f", default {field['default']}"
    return kind


def main() -> None:
    PAGE.write_text(page())
    SNAPSHOTS.mkdir(exist_ok=True)
    for profile in PROFILES.values():
        (SNAPSHOTS / f"{profile.name}.json").write_text(snapshot(profile))


if __name__ == "__main__":
    main()
