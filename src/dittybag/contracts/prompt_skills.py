"""Stored prompts as skills of one file, whose front matter has their name and description."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from dittybag.contracts.skill_extension import STORED_PROMPTS
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import PromptNotFound
from dittybag.domain.prompts import Prompt
from dittybag.domain.skill_texts import skill_front_matter, skill_name, skill_text
from dittybag.domain.skills import SKILL_FILE, Skill, SkillFile, is_skill_name
from dittybag.protocol.request_context import Context
from dittybag.services.prompt_service import PromptAddress

#: Maximum size of the prompts that are read for one page.
_PAGE_BYTES: Final = 16 * 1024 * 1024
#: Prompts are read one by one.
_PAGE_PROMPTS: Final = 250


class PromptSkills:
    """The prompts of a project as skills."""

    def __init__(self, scope: ServerScope) -> None:
        self._scope = scope
        self._prompts = scope.workspace.prompts

    async def page(self, after: int, limit: int, ctx: Context) -> tuple[list[Skill], int | None]:
        """Return skills in creation order, starting after number `after`, and where the next page begins."""
        prompts, more = await self._prompts.contents(
            self._scope.caller(ctx), after, min(limit, _PAGE_PROMPTS), _PAGE_BYTES
        )
        return [_skill(prompt) for prompt in prompts], prompts[-1].number if more else None

    async def find(self, path: str, ctx: Context) -> Skill | None:
        """Return the skill at a path."""
        prompt = await self._find(path, ctx)
        return None if prompt is None else _skill(prompt)

    async def read(self, path: str, ctx: Context) -> tuple[SkillFile, bytes] | None:
        """Return the file of the skill at a path, and its content."""
        prompt = await self._find(path, ctx)
        if prompt is None:
            return None
        return _skill(prompt).head, skill_text(prompt)

    async def _find(self, path: str, ctx: Context) -> Prompt | None:
        parts = path.split("/")
        if len(parts) not in (2, 3):
            return None
        address = PromptAddress(name=parts[1]) if len(parts) == 2 else PromptAddress(id=parts[1])
        try:
            prompt = await self._prompts.get(self._scope.caller(ctx), address)
        except PromptNotFound:
            return None
        return prompt if skill_path(prompt) == path else None


def skill_path(prompt: Prompt) -> str:
    """Return the path of a prompt. If its name is not that of a skill, the path has its id as well."""
    if is_skill_name(prompt.name):
        return f"{STORED_PROMPTS}/{prompt.name}"
    return f"{STORED_PROMPTS}/{prompt.id}/{skill_name(prompt.name, prompt.id)}"


def _skill(prompt: Prompt) -> Skill:
    content = skill_text(prompt)
    file = SkillFile(
        SKILL_FILE, sha256(content).hexdigest(), len(content), "text/markdown", prompt.updated_at
    )
    return Skill(path=skill_path(prompt), front_matter=dict(skill_front_matter(prompt)), files=(file,))
