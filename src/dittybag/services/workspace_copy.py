"""Copies a workspace with its history into another store; an interrupted copy is resumed.

The log is replayed in the target in chunks. So the target always matches an earlier state of the source, and
its own log records the progress.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Member, Token, User
from dittybag.domain.changes import Change
from dittybag.domain.entities import ENTITY_TYPES, Kind
from dittybag.domain.errors import CopyRefused
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.domain.resources import Resource

#: Number of changes to replay at a time.
_CHUNK: Final = 500

ReportProgress = Callable[[str], object]


class CopyResult(Struct, frozen=True):
    """The result of a copy."""

    #: The number of changes in total, and in this run.
    changes: int
    copied: int
    #: The number of entities by kind.
    entities: dict[str, int]


class _Accounts(Struct, frozen=True):
    """The accounts of a workspace."""

    users: list[User]
    tokens: list[Token]
    hashes: dict[int, str]
    members: dict[int, list[Member]]


class WorkspaceCopy:
    """A copy from one store to another."""

    def __init__(self, source: Store, target: Store, report: ReportProgress) -> None:
        self._source = source
        self._target = target
        self._report = report

    async def run(self) -> CopyResult:
        """Copy and compare. Raises `CopyRefused` if the target has other content or the copy differs."""
        start = done = await self._copied_seq()
        total = await _newest_seq(self._source)
        while chunk := await _since(self._source, done):
            await self._replay(chunk, is_first=done == 0)
            done = chunk[-1].seq
            self._report(f"Copying: {done:,} of {max(total, done):,} changes")
        await self._copy_accounts()
        return CopyResult(done, done - start, await self._compare())

    async def _copied_seq(self) -> int:
        """Return the `seq` up to which the target has the log of the source."""

        async def is_new(transaction: Transaction) -> bool:
            return await transaction.initial_change() is not None

        if await self._target.read(is_new):
            return 0
        newest = await _newest_seq(self._target)
        # A full comparison takes as long as the copy; it follows at the end.
        ours, theirs = await _change(self._source, newest), await _change(self._target, newest)
        if ours is None or ours != theirs:
            raise CopyRefused("it already contains other data")
        return newest

    async def _replay(self, chunk: Sequence[Change], *, is_first: bool) -> None:
        contents = await self._contents(chunk)

        async def log() -> AsyncIterator[Change]:
            for change in chunk:
                yield change

        async def work(transaction: Transaction) -> None:
            for content in contents:
                await transaction.store_content(content)
            if is_first:
                await transaction.replay(log())
            else:
                await transaction.continue_replay(chunk)

        await self._target.write(work, actor="")

    async def _contents(self, chunk: Sequence[Change]) -> list[bytes]:
        """Return the contents of the resources in some changes."""
        wanted = dict.fromkeys(
            entity.sha256
            for change in chunk
            for entity in (change.before, change.after)
            if isinstance(entity, Resource)
        )

        async def work(transaction: Transaction) -> list[bytes]:
            return [await transaction.content(sha256) for sha256 in wanted]

        return await self._source.read(work, slow=True)

    async def _copy_accounts(self) -> None:
        """Copy users, tokens and members, which are not in the change log."""

        async def read(transaction: Transaction) -> _Accounts:
            accounts = transaction.accounts
            projects = await transaction.projects.all()
            return _Accounts(
                await accounts.users(),
                await accounts.tokens(),
                await accounts.token_hashes(),
                {size.project.id: await accounts.members(size.project.id) for size in projects},
            )

        found = await self._source.read(read, slow=True)

        async def write(transaction: Transaction) -> None:
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

        await self._target.write(write, actor="")

    # Comparing

    async def _compare(self) -> dict[str, int]:
        """Compare both stores. Returns the number of entities by kind."""
        seq = 0
        while ours := await _since(self._source, seq):
            theirs = await _since(self._target, seq)
            if ours != theirs:
                raise CopyRefused(f"its log differs after change {seq}")
            seq = ours[-1].seq
            self._report(f"Comparing: {seq:,} changes")
        counts: dict[str, int] = {}
        for kind in ENTITY_TYPES:
            counts[kind] = await self._compare_entities(kind)
        return counts

    async def _compare_entities(self, kind: Kind) -> int:
        number = count = 0
        while ours := await _entities(self._source, kind, number):
            if ours != await _entities(self._target, kind, number):
                raise CopyRefused(f"its {kind}s differ")
            if kind == "resource":
                await self._compare_contents(ours)
            count += len(ours)
            number = ours[-1].id if kind in ("project", "task") else ours[-1].number
            self._report(f"Comparing: {count:,} {kind}s")
        if await _entities(self._target, kind, number):
            raise CopyRefused(f"it contains additional {kind}s")
        return count

    async def _compare_contents(self, resources: Sequence[Resource]) -> None:
        for resource in resources:

            async def content(transaction: Transaction, sha256: str = resource.sha256) -> bytes:
                return await transaction.content(sha256)

            if await self._source.read(content) != await self._target.read(content):
                raise CopyRefused(f"the content of resource '{resource.name}' differs")


async def _newest_seq(store: Store) -> int:
    async def work(transaction: Transaction) -> int:
        return await transaction.changes.newest_seq()

    return await store.read(work)


async def _change(store: Store, seq: int) -> Change | None:
    async def work(transaction: Transaction) -> Change | None:
        return await transaction.changes.get(seq)

    return await store.read(work)


async def _since(store: Store, seq: int) -> list[Change]:
    async def work(transaction: Transaction) -> list[Change]:
        return await transaction.changes.page(ChangeQuery(after=seq, limit=_CHUNK, oldest_first=True))

    return await store.read(work, slow=True)


async def _entities(store: Store, kind: Kind, number: int) -> list[Any]:
    async def work(transaction: Transaction) -> list[Any]:
        found: list[Any] = await transaction.page_of_kind(kind, number, _CHUNK)
        return found

    return await store.read(work, slow=True)
