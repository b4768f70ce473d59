"""Copies a workspace with its history into another store; an interrupted copy is resumed.

The log is replayed in the target in chunks. So the target always matches an earlier state of the source, and
its own log records the progress.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Member, Token, User
from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import CopyRefused
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.progress import ReportProgress
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource
from dittybag.exchange.export_data import all_entities
from dittybag.services.entity_writes import update
from dittybag.services.lost_claims import without_claim

#: Number of changes to replay at a time.
_CHUNK: Final = 500
#: Who gives tasks back in the log of the target.
_ACTOR: Final = "dittybag copy"


class CopyResult(Struct, frozen=True):
    """The result of a copy."""

    #: The number of changes in total, and in this run.
    changes: int
    copied: int
    #: The number of entities by kind.
    entities: dict[str, int]


async def copy_workspace(source: Store, target: Store, report: ReportProgress) -> CopyResult:
    """Copy and compare. Raises `CopyRefused` if the target has other content or the copy differs."""
    start = done = await _copied_seq(source, target)
    total = await _newest_seq(source)
    while chunk := await _changes_since(source, done):
        contents = await source.read(partial(_read_contents, changes=chunk), slow=True)
        replay = partial(_replay, changes=chunk, contents=contents, is_first=done == 0)
        await target.write(replay, actor="")
        done = chunk[-1].seq
        report("Copying changes", done, max(total, done))
    accounts = await source.read(_read_accounts, slow=True)
    await target.write(partial(_write_accounts, found=accounts), actor="")
    entities = await _compare(source, target, report)
    await target.write(_give_back_tasks, actor=_ACTOR)
    return CopyResult(done, done - start, entities)


async def _give_back_tasks(transaction: Transaction) -> None:
    """Let tasks be claimed again that were claimed in the source: claims are not copied."""
    async for task in all_entities(transaction, "task"):
        given_back = await without_claim(transaction, task)
        if given_back != task and await transaction.claims.get(task.id) is None:
            await update(transaction, task, status=given_back.status, assignee=given_back.assignee)


async def _copied_seq(source: Store, target: Store) -> int:
    """Return the `seq` up to which the target has the log of the source. Raises `CopyRefused`."""
    if await target.read(lambda transaction: transaction.initial_change()) is not None:
        return 0
    newest = await _newest_seq(target)
    # A full comparison takes as long as the copy; it follows at the end.
    ours, theirs = [
        await store.read(lambda transaction: transaction.changes.get(newest)) for store in (source, target)
    ]
    if ours is None or ours != theirs:
        raise CopyRefused("it already contains other data")
    return newest


async def _newest_seq(store: Store) -> int:
    return await store.read(lambda transaction: transaction.changes.newest_seq())


async def _changes_since(store: Store, seq: int) -> list[Change]:
    query = ChangeQuery(after=seq, limit=_CHUNK, oldest_first=True)
    return await store.read(lambda transaction: transaction.changes.page(query), slow=True)


async def _read_contents(transaction: Transaction, changes: Sequence[Change]) -> list[bytes]:
    """Return the contents of the resources in some changes."""
    states = (state for change in changes for state in (change.before, change.after))
    wanted = dict.fromkeys(state.sha256 for state in states if isinstance(state, Resource))
    return [await transaction.content(sha256) for sha256 in wanted]


async def _replay(
    transaction: Transaction, changes: Sequence[Change], contents: Sequence[bytes], *, is_first: bool
) -> None:
    for content in contents:
        await transaction.store_content(content)
    if is_first:
        await transaction.replay(_each(changes[:1]))
    # All at once is faster than one at a time.
    await transaction.continue_replay(changes[1:] if is_first else changes)


async def _each(changes: Sequence[Change]) -> AsyncIterator[Change]:
    for change in changes:
        yield change


# Accounts, which are not in the change log


class _Accounts(Struct, frozen=True):
    """The accounts of a workspace."""

    users: list[User]
    tokens: list[Token]
    hashes: dict[int, str]
    members: dict[int, list[Member]]


async def _read_accounts(transaction: Transaction) -> _Accounts:
    accounts = transaction.accounts
    projects = [size.project.id for size in await transaction.projects.all()]
    return _Accounts(
        await accounts.users(),
        await accounts.tokens(),
        await accounts.token_hashes(),
        {project: await accounts.members(project) for project in projects},
    )


async def _write_accounts(transaction: Transaction, found: _Accounts) -> None:
    accounts = transaction.accounts
    for user in found.users:
        await accounts.put_user(user)
    for token in found.tokens:
        existing = await accounts.token_by_hash(found.hashes[token.id])
        existing = existing or await accounts.add_token(token, found.hashes[token.id])
        await accounts.put_token(replace(token, id=existing.id))
    for project, members in found.members.items():
        for member in members:
            await accounts.put_member(project, member.user, member.role)


# Comparison


async def _compare(source: Store, target: Store, report: ReportProgress) -> dict[str, int]:
    """Compare both stores. Returns the number of entities by kind. Raises `CopyRefused`."""
    seq, total = 0, await _newest_seq(source)
    while ours := await _changes_since(source, seq):
        if ours != await _changes_since(target, seq):
            raise CopyRefused(f"its log differs after change {seq}")
        seq = ours[-1].seq
        report("Comparing changes", seq, max(total, seq))
    return {kind: await _compare_entities(source, target, kind, report) for kind in ENTITY_TYPES}


async def _compare_entities(source: Store, target: Store, kind: Kind, report: ReportProgress) -> int:
    number = count = 0
    while ours := await _entities(source, kind, number):
        if ours != await _entities(target, kind, number):
            raise CopyRefused(f"its {kind}s differ")
        for entity in ours if kind == "resource" else ():
            await _compare_contents(source, target, entity)
        count += len(ours)
        number = getattr(ours[-1], ENTITY_TYPES[kind].key)
        report(f"Comparing {kind}s: {count:,}")
    if await _entities(target, kind, number):
        raise CopyRefused(f"it contains additional {kind}s")
    return count


async def _entities(store: Store, kind: Kind, number: int) -> list[Any]:
    return await store.read(lambda transaction: transaction.page_of_kind(kind, number, _CHUNK), slow=True)


async def _compare_contents(source: Store, target: Store, resource: Resource) -> None:
    ours, theirs = [
        await store.read(lambda transaction: transaction.content(resource.sha256))
        for store in (source, target)
    ]
    if ours != theirs:
        raise CopyRefused(f"the content of resource '{resource.name}' differs")
