"""Pages of the change log with one entry for each batch, however many changes it has."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.changes import BatchCount, Change
from dittybag.domain.entities import Kind
from dittybag.domain.ports import Store, Transaction
from dittybag.domain.queries import ChangeQuery
from dittybag.services.caller import Caller, ScopedStore, reading
from dittybag.services.history_service import (
    MAX_SCANNED,
    MAX_TEXT_SCANNED,
    find_addresses,
    find_change,
    fit_page,
    text_window_start,
    visible_query,
)

#: Number of changes to look up at a time. The rest of the last batch among them is skipped.
_FOUND_AT_ONCE: Final = 100
#: The counts of larger batches are cached, because a batch never changes.
_CACHED_SIZE: Final = 500
_MAX_CACHED: Final = 2000

#: The counts of batches by batch, time and viewer. A restore from a backup replaces the log.
_Counts: TypeAlias = dict[tuple[int, int, str | None, int | None], list[BatchCount]]


class BatchEntry(Struct, frozen=True):
    """A batch of changes, as far as the caller can see it."""

    #: A change of the batch that matches the query.
    change: Change
    #: The number of changes by kind and action.
    counts: list[BatchCount]

    @property
    def total(self) -> int:
        return sum(count.count for count in self.counts)


class BatchPage(Struct, frozen=True):
    """A page of batches, newest first, and where the next pages start."""

    entries: list[BatchEntry]
    #: The `seq` before which there may be older changes; `None` if there are none.
    older: int | None
    #: The `seq` after which there may be newer changes; `None` if there are none.
    newer: int | None
    #: The `seq` of the newest change in the log.
    newest: int
    #: Whether the page is short because the scan reached its limit.
    is_truncated: bool
    #: The addresses of existing entities and their projects, by kind and id.
    addresses: Mapping[tuple[Kind, str], str]


class _FoundBatches(Struct):
    """The batches that a scan found: for each, the `seq` and the size of a matching change."""

    matches: dict[int, tuple[int, int]] = {}
    #: The scan ended before this `seq`, or after it if it went from old to new.
    end: int = 0
    #: Whether the scan reached its limit.
    is_truncated: bool = False


async def list_batch(
    transaction: Transaction, caller: Caller, seq: int, limit: int
) -> tuple[list[Change], int]:
    """Return the first changes of the batch of a change that the caller can see, and the number of all.

    Raises `ChangeNotFound`.
    """
    change = await find_change(transaction, caller, seq)
    query = await visible_query(transaction, caller, ChangeQuery(project=_visible_project(caller)))
    counts = await transaction.changes.batch_counts([change.batch], query)
    last = max(item.last for item in counts)
    found = await transaction.changes.find_in_batches(
        replace(query, after=change.batch - 1, before=last + 1, limit=limit, oldest_first=True)
    )
    changes = await transaction.changes.by_seqs(fit_page([(seq, size) for seq, _, size in found]))
    return changes[::-1], sum(item.count for item in counts)


class BatchService:
    """Lists batches of changes. Counts of large batches are cached."""

    def __init__(self, store: Store) -> None:
        self._store = ScopedStore(store)
        self._counts: OrderedDict[tuple[int, int, str | None, int | None], list[BatchCount]] = OrderedDict()

    async def browse(self, caller: Caller, query: ChangeQuery, limit: int) -> BatchPage:
        """Return a page of batches with matching changes.

        These are the newest, those before `query.before` or, with `query.oldest_first`, the next after
        `query.after`. They are returned newest first. The scan is limited; see `BatchPage.is_truncated`.
        """
        page, counts = await self._store.read(caller, _browse_batches, query, limit, self._counts, slow=True)
        self._counts.update(counts)
        while len(self._counts) > _MAX_CACHED:
            self._counts.popitem(last=False)
        return page

    changes = reading(list_batch)


async def _browse_batches(
    transaction: Transaction, caller: Caller, query: ChangeQuery, limit: int, known: _Counts
) -> tuple[BatchPage, _Counts]:
    """Return a page and the counts to cache."""
    query = await visible_query(transaction, caller, query)
    newest = await transaction.changes.newest_seq()
    scan = _scan_newer if query.oldest_first else _scan_older
    found = await scan(transaction, query, limit + 1, newest)
    # In the order of the scan.
    matches = list(found.matches.items())
    seqs = fit_page([match for _, match in matches[:limit]])
    shown = [batch for batch, _ in matches[: len(seqs)]]
    is_more = len(shown) < len(matches)
    changes = await transaction.changes.by_seqs(seqs)
    counts = await _count(transaction, caller, query, changes, known)
    entries = [BatchEntry(change, counts[_key(caller, change)]) for change in changes]
    older: int | None
    newer: int | None
    if query.oldest_first:
        newer = seqs[-1] if is_more else (found.end if found.is_truncated else None)
        older = shown[0] if shown else query.after + 1
    else:
        older = shown[-1] if is_more else (found.end if found.is_truncated else None)
        is_newest = query.before is None or query.before > newest
        newer = None if is_newest else (seqs[0] if seqs else (query.before or 1) - 1)
    page = BatchPage(
        entries,
        older,
        newer,
        newest,
        is_truncated=found.is_truncated and not is_more,
        addresses=await find_addresses(transaction, changes),
    )
    cached = {key: items for key, items in counts.items() if sum(item.count for item in items) > _CACHED_SIZE}
    return page, cached


async def _scan_older(
    transaction: Transaction, query: ChangeQuery, wanted: int, newest: int
) -> _FoundBatches:
    """Find batches from the newest to the oldest."""
    before = newest + 1 if query.before is None else min(query.before, newest + 1)
    found = _FoundBatches({}, before)
    left = MAX_SCANNED
    if query.text is not None:
        left = before - await text_window_start(transaction, before)
    while len(found.matches) < wanted and before > query.after + 1:
        low = max(before - left - 1, query.after)
        # A search for text reads all changes anyway.
        limit = None if query.text is not None else _FOUND_AT_ONCE
        rows = await transaction.changes.find_in_batches(
            replace(query, after=low, before=before, limit=limit)
        )
        for seq, batch, size in rows:
            found.matches.setdefault(batch, (seq, size))
        if limit is None or len(rows) < limit:
            # The rest of a batch that was found is not another one.
            found.end = min(low + 1, *(batch for _, batch, _ in rows[-1:]), before)
            found.is_truncated = low > query.after
            return found
        left -= before - rows[-1][0]
        before = found.end = rows[-1][1]
    return found


async def _scan_newer(
    transaction: Transaction, query: ChangeQuery, wanted: int, newest: int
) -> _FoundBatches:
    """Find batches from the oldest to the newest."""
    found = _FoundBatches({}, query.after)
    left = MAX_SCANNED if query.text is None else MAX_TEXT_SCANNED
    while len(found.matches) < wanted and found.end < newest:
        high = min(found.end + left, newest)
        rows = await transaction.changes.find_in_batches(
            replace(query, after=found.end, before=high + 1, limit=_FOUND_AT_ONCE)
        )
        for seq, batch, size in rows:
            found.matches[batch] = (seq, size)
        if len(rows) < _FOUND_AT_ONCE:
            found.is_truncated = high < newest
            found.end = high
            return found
        left -= rows[-1][0] - found.end
        counts = await transaction.changes.batch_counts([rows[-1][1]], ChangeQuery())
        found.end = max(count.last for count in counts)
    return found


def _visible_project(caller: Caller) -> int | None:
    """Return the only project whose changes the caller can see; `None` for the owner of the machine."""
    return None if caller.principal is None else caller.project


def _key(caller: Caller, change: Change) -> tuple[int, int, str | None, int | None]:
    return change.batch, change.at, caller.viewer, _visible_project(caller)


async def _count(
    transaction: Transaction, caller: Caller, query: ChangeQuery, changes: Iterable[Change], known: _Counts
) -> _Counts:
    """Return the counts of the batches of changes: all of them for the owner of the machine."""
    keys = {change.batch: _key(caller, change) for change in changes}
    counts = {key: known[key] for key in keys.values() if key in known}
    missing = [batch for batch, key in keys.items() if key not in counts]
    visible = ChangeQuery(project=_visible_project(caller), user=query.user)
    for item in await transaction.changes.batch_counts(missing, visible) if missing else []:
        counts.setdefault(keys[item.batch], []).append(item)
    return counts
