"""Numbered alternatives for names, titles and URIs that are already in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from dittybag.domain.names import NAME_LENGTH, name_from_title, numbered_names
from dittybag.domain.ports import Transaction
from dittybag.domain.prompts import TITLE_LENGTH, Prompt
from dittybag.domain.resources import URI_LENGTH, Resource


async def _first_free(wanted: str, form: str, length: int, taken: Callable[[str], Awaitable[object]]) -> str:
    for candidate in numbered_names(wanted, form, length):
        if not await taken(candidate):
            return candidate
    raise AssertionError("numbered_names is infinite")


async def rename_prompt_if_taken(
    transaction: Transaction, prompt: Prompt, old: Prompt | None = None
) -> Prompt:
    """Return the prompt with a name and a title that no prompt except `old` uses."""
    prompts, project = transaction.prompts, prompt.project
    name, title = prompt.name or name_from_title(prompt.title), prompt.title or prompt.name
    if old is None or old.name != name:
        name = await _first_free(name, "-{}", NAME_LENGTH, lambda name: prompts.name_taken(project, name))
    if old is None or old.title != title:
        title = await _first_free(
            title, " ({})", TITLE_LENGTH, lambda title: prompts.title_taken(project, title)
        )
    return replace(prompt, name=name, title=title)


async def rename_resource_if_taken(
    transaction: Transaction, resource: Resource, old: Resource | None = None
) -> Resource:
    """Return the resource with a name and a URI that no resource except `old` uses."""
    resources, project = transaction.resources, resource.project
    name, uri = resource.name, resource.uri
    if old is None or old.name != name:
        name = await _first_free(name, "-{}", NAME_LENGTH, lambda name: resources.by_name(project, name))
    if old is None or old.uri != uri:
        uri = await _first_free(uri, "-{}", URI_LENGTH, lambda uri: resources.by_uri(project, uri))
    return replace(resource, name=name, uri=uri)
