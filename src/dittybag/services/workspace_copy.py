"""Copying a workspace into another store, with its history; one that was stopped is gone on with.

The log is done again in the other store, some of it at a time. So what is there at any moment is what was
here at some moment, and how far it is stands in its own log.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.accounts import Member, Token, User
from dittybag.domain.changes import KINDS, Change, Kind
from dittybag.domain.errors import CopyRefused
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.resources import Resource

#: So many changes are done again at a time.
_CHUNK: Final = 500

Tell = Callable[[str], object]


class CopyResult(Struct, frozen=True):
    """What was copied."""

    #: In all, and in this run.
    changes: int
    copied: int
    things: dict[str, int]


class _Accounts(Struct, frozen=True):
    """Who is known, by what, and where they are members."""

    users: list[User]
    tokens: list[Token]
    hashes: dict[int, str]
    members: dict[int, list[Member]]


class WorkspaceCopy:
    """One copy."""

    def __init__(self, source: Store, target: Store, tell: Tell) -> None:
        self._source = source
        self._target = target
        self._tell = tell

    async def run(self) -> CopyResult:
        """Raises `CopyRefused` if there is something else in the target, or if the copy is not equal."""
        begun = done = await self._done()
        total = await _newest(self._source)
        while chunk := await _since(self._source, done):
            await self._repeat(chunk, anew=done == 0)
            done = chunk[-1].seq
            self._tell(f"Copying: {done:,} of {max(total, done):,} changes")
        await self._copy_accounts()
        return CopyResult(done, done - begun, await self._compare())

    async def _done(self) -> int:
        """How much of the log is in the target already."""

        async def untouched(transaction: Transaction) -> bool:
            return await transaction.initial_change() is not None

        if await self._target.read(untouched):
            return 0
        newest = await _newest(self._target)
        # Comparing all of it takes as long as copying; that is done in the end.
        ours, theirs = await _change(self._source, newest), await _change(self._target, newest)
        if ours is None or ours != theirs:
            raise CopyRefused("there is something else in it")
        return newest

    async def _repeat(self, chunk: Sequence[Change], *, anew: bool) -> None:
        contents = await self._contents(chunk)

        async def log() -> AsyncIterator[Change]:
            for change in chunk:
                yield change

        async def work(transaction: Transaction) -> None:
            for content in contents:
                await transaction.store_content(content)
            if anew:
                await transaction.replay(log())
            else:
                await transaction.continue_replay(chunk)

        await self._target.write(work, actor="")

    async def _contents(self, chunk: Sequence[Change]) -> list[bytes]:
        """What the resources of some changes hold."""
        wanted = dict.fromkeys(
            thing.sha256
            for change in chunk
            for thing in (change.before, change.after)
            if isinstance(thing, Resource)
        )

        async def work(transaction: Transaction) -> list[bytes]:
            return [await transaction.content(sha256) for sha256 in wanted]

        return await self._source.read(work, slow=True)

    async def _copy_accounts(self) -> None:
        """Users, tokens and members are in no log: they are copied as they are."""

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
                there = await accounts.token_by_hash(found.hashes[token.id])
                there = there or await accounts.add_token(token, found.hashes[token.id])
                await accounts.put_token(replace(token, id=there.id))
            for project, members in found.members.items():
                for member in members:
                    await accounts.put_member(project, member.user, member.role)

        await self._target.write(write, actor="")

    # Comparing

    async def _compare(self) -> dict[str, int]:
        """Compare all there is; how much of each kind."""
        seq = 0
        while ours := await _since(self._source, seq):
            theirs = await _since(self._target, seq)
            if ours != theirs:
                raise CopyRefused(f"its log is not equal after change {seq}")
            seq = ours[-1].seq
            self._tell(f"Comparing: {seq:,} changes")
        counts: dict[str, int] = {}
        for kind in KINDS:
            counts[kind] = await self._compare_things(kind)
        return counts

    async def _compare_things(self, kind: Kind) -> int:
        number = count = 0
        while ours := await _things(self._source, kind, number):
            if ours != await _things(self._target, kind, number):
                raise CopyRefused(f"its {kind}s are not equal")
            if kind == "resource":
                await self._compare_contents(ours)
            count += len(ours)
            number = ours[-1].id if kind in ("project", "task") else ours[-1].number
            self._tell(f"Comparing: {count:,} {kind}s")
        if await _things(self._target, kind, number):
            raise CopyRefused(f"there are other {kind}s in it")
        return count

    async def _compare_contents(self, resources: Sequence[Resource]) -> None:
        for resource in resources:

            async def content(transaction: Transaction, sha256: str = resource.sha256) -> bytes:
                return await transaction.content(sha256)

            if await self._source.read(content) != await self._target.read(content):
                raise CopyRefused(f"the content of resource '{resource.name}' is not equal")


async def _newest(store: Store) -> int:
    async def work(transaction: Transaction) -> int:
        page = await transaction.changes.page(None, kind=None, entity=None, before=None, limit=1)
        return page[0].seq if page else 0

    return await store.read(work)


async def _change(store: Store, seq: int) -> Change | None:
    async def work(transaction: Transaction) -> Change | None:
        return await transaction.changes.get(seq)

    return await store.read(work)


async def _since(store: Store, seq: int) -> list[Change]:
    async def work(transaction: Transaction) -> list[Change]:
        return await transaction.changes.since(seq, _CHUNK)

    return await store.read(work, slow=True)


async def _things(store: Store, kind: Kind, number: int) -> list[Any]:
    async def work(transaction: Transaction) -> list[Any]:
        found: list[Any] = await transaction.page_of_kind(kind, number, _CHUNK)
        return found

    return await store.read(work, slow=True)
