"""Previews of context packs: the text that an agent would get now, and what it consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.packs import Pack, PackEntry
from dittybag.domain.pins import split_pin
from dittybag.domain.queries import DEFAULT_BUDGET, MAX_BUDGET, MIN_BUDGET, PackRequest
from dittybag.domain.text import QUERY_LENGTH, one_line
from dittybag.services.project_overview import is_person
from dittybag.web.browser_requests import WebRequest, WebResponse, parse_number
from dittybag.web.template_rendering import render_page

#: Budgets to choose from; any other one can be typed.
_BUDGETS: Final = (1_500, DEFAULT_BUDGET, 4_000, 8_000)
#: The value of the field for an agent that has changed nothing.
NEW_AGENT: Final = "-"
_MAX_AGENTS: Final = 50
_CHANGE: Final = "change:"


class PackRow(Struct, frozen=True, kw_only=True):
    """An item of a pack for display."""

    role: str
    title: str
    link: str
    tokens: int
    #: How much of its text is in the pack, in words.
    extent: str


async def show_pack(
    request: WebRequest, template: str, path: str, wanted: PackRequest, *, status: int = 200, **values: Any
) -> WebResponse:
    """Show a pack on the page at `path`.

    `wanted`: what the pack is about. The address has the budget and the agent.
    """
    pack, agents, agent, budget = await _make(request, wanted)
    shown = {"query": wanted.query, "agent": agent or NEW_AGENT}
    rows = [_row(request, entry) for entry in pack.entries if not entry.key.startswith(_CHANGE)]
    return render_page(
        request,
        template,
        status=status,
        pack=pack,
        rows=rows,
        left_out=[_row(request, entry) for entry in pack.left_out if not entry.key.startswith(_CHANGE)],
        is_search_cut=any(entry.role.startswith("Found") for entry in pack.left_out),
        changes=[entry for entry in pack.entries if entry.key.startswith(_CHANGE)],
        changes_left_out=sum(entry.key.startswith(_CHANGE) for entry in pack.left_out),
        budget=budget,
        budget_problem=_budget_problem(request),
        min_budget=MIN_BUDGET,
        max_budget=MAX_BUDGET,
        budgets=[(number, request.link(path, **shown, budget=number)) for number in _BUDGETS],
        agents=agents,
        agent=agent,
        new_agent=NEW_AGENT,
        page=request.link(path),
        text_path=request.link(f"{path}/text", **shown, budget=budget),
        **values,
    )


async def pack_text(request: WebRequest, wanted: PackRequest) -> WebResponse:
    """Return the text of a pack alone, to copy it."""
    pack, *_ = await _make(request, wanted)
    headers = ((b"cache-control", b"no-store"),)
    return WebResponse(200, pack.text.encode(), b"text/plain; charset=utf-8", headers)


def read_query(request: WebRequest) -> str:
    """Return the query that a pack is about."""
    return request.query.get("query", "").strip()[:QUERY_LENGTH]


async def _make(request: WebRequest, wanted: PackRequest) -> tuple[Pack, Sequence[str], str, int]:
    """Return a pack as an agent would get it, the agents to choose from, the chosen one and the budget."""
    agents = await _find_agents(request)
    agent = _chosen_agent(request, agents)
    budget = request.int_parameter("budget", DEFAULT_BUDGET, MIN_BUDGET, MAX_BUDGET)
    # Nobody has an empty name. Whose changes are left out is all that the name decides.
    caller = replace(request.caller, actor=agent)
    pack = await request.workspace.packs.make(caller, replace(wanted, budget=budget))
    return pack, agents, agent, budget


def _budget_problem(request: WebRequest) -> str:
    typed = request.query.get("budget", "")
    number = parse_number(typed)
    if not typed or (number is not None and MIN_BUDGET <= number <= MAX_BUDGET):
        return ""
    return f"Budget must be an integer from {MIN_BUDGET} to {MAX_BUDGET:,}"


async def _find_agents(request: WebRequest) -> list[str]:
    """Return the agents with the access of this session that have changed something, the latest first."""
    principal, person = request.caller.principal, request.context.person
    found: list[str] = []
    for seen in await request.workspace.overview.seen_actors(request.caller):
        is_own = principal is None or seen.actor.startswith(f"{principal.user} via ")
        if is_own and not is_person(seen.actor, seen.interface, person):
            found.append(seen.actor)
    return list(dict.fromkeys(found))[:_MAX_AGENTS]


def _chosen_agent(request: WebRequest, agents: Sequence[str]) -> str:
    """Return the agent of the address, or the one that was here last; empty for a new one."""
    name = request.query.get("agent", "")
    if name == NEW_AGENT:
        return ""
    return name if name in agents else next(iter(agents), "")


def _row(request: WebRequest, entry: PackEntry) -> PackRow:
    return PackRow(
        role=entry.role,
        title=one_line(entry.title) or one_line(entry.ref),
        link=item_link(request, entry.key),
        tokens=entry.tokens,
        extent=_describe_extent(entry),
    )


def item_link(request: WebRequest, pin: str) -> str:
    """Return the page of an item by its key in a pack, which is also its pin."""
    kind, key = split_pin(pin)
    if kind == "library":
        return request.link("/libraries/prompt", name=key)
    if kind == "resource":
        return request.link("/resources/view", id=key)
    return request.link(f"/{kind}s/{key}")


def _describe_extent(entry: PackEntry) -> str:
    if not entry.length:
        return "no text"
    if not entry.shown:
        return "only its name"
    if entry.shown < entry.length:
        return f"{entry.shown:,} of {entry.length:,} characters"
    return "whole text"
