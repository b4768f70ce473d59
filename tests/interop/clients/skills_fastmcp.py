"""FastMCP's client reads the skills of Dittybag with its own support for the extension."""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.skills.client import SkillsClientExtension
from skills_scenario import content_of


def target(server: dict[str, Any]) -> Any:
    if "url" in server:
        return server["url"]
    return StdioTransport(server["command"], server["args"], cwd=server["cwd"], env=server.get("env"))


async def main(plan: dict[str, Any]) -> dict[str, Any]:
    async with Client(target(plan["server"]), extensions=[SkillsClientExtension()]) as client:
        skills = await client.list_skills()
        files = {}
        for skill in skills:
            assert await client.get_skill(skill.uri) == skill
            for file in skill.resources:
                content = content_of(await client.read_resource_mcp(file.uri))
                assert file.size == len(content), file
                assert file.digest == f"sha256:{hashlib.sha256(content).hexdigest()}", file
                files[file.uri] = file.digest
        entries = [skill.model_dump(mode="json", exclude_none=False) for skill in skills]
        return {"version": client.protocol_version, "entries": entries, "files": files}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(json.loads(sys.argv[1])))))
