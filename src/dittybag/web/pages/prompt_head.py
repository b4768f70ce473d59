"""The head of the pages of a prompt, which is the same on all its tabs and for library prompts."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Prompt
from dittybag.web.browser_requests import WebRequest
from dittybag.web.pages.entity_history import latest_change

Tab = Literal["use", "template", "history"]


class PromptHead(Struct, frozen=True, kw_only=True):
    """What the head shows."""

    label: str
    name: str
    description: str | None
    #: Key, label and URL.
    tabs: list[tuple[Tab, str, str]]
    tab: Tab
    tags: tuple[str, ...] = ()
    #: `None` for a prompt that was deleted, and for a library prompt.
    prompt: Prompt | None = None
    actor: str = ""
    #: Library prompts only: the library and the path of the file.
    library: str = ""
    file: str = ""


async def stored_head(
    request: WebRequest, prompt: Prompt, tab: Tab, *, exists: bool = True, actor: str | None = None
) -> PromptHead:
    """Return the head of a stored prompt. `actor`: who changed it last, if that is known."""
    if exists and actor is None:
        latest = await latest_change(request, "prompt", prompt.id)
        actor = "" if latest is None else latest.actor
    page = request.link(f"/prompts/{prompt.id}")
    template = request.link(f"/prompts/{prompt.id}", tab="template")
    history: tuple[Tab, str, str] = ("history", "History", request.link(f"/prompts/{prompt.id}/history"))
    return PromptHead(
        label=prompt.label,
        name=prompt.name,
        description=prompt.description,
        tabs=[("use", "Use", page), ("template", "Template", template), history] if exists else [history],
        tab=tab,
        tags=prompt.tags,
        prompt=prompt if exists else None,
        actor=actor or "",
    )


async def library_head(request: WebRequest, prompt: LibraryPrompt, tab: Tab, file: str) -> PromptHead:
    """Return the head of a library prompt, which has no history."""
    page = request.link("/libraries/prompt", name=prompt.name)
    template = request.link("/libraries/prompt", name=prompt.name, tab="template")
    return PromptHead(
        label=prompt.title or prompt.name,
        name=prompt.name,
        description=prompt.description,
        tabs=[("use", "Use", page), ("template", "Template", template)],
        tab=tab,
        library=prompt.library,
        file=file,
    )
