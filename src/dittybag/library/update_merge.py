"""Merging: what becomes of each file when a library is updated.

Three versions of a file decide: as it was installed, as it is here now, and as the source has it now. What
nobody edited here follows the source. What was edited here stays as it is, whether the source has changed it
too (then it is a conflict, and reported) or not. A deletion is an edit like any other: a file that was
deleted here stays deleted, also when the source changes it, which is reported once.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class MergePlan(Struct, frozen=True, kw_only=True):
    """What becomes of the files. Nothing is in two of these, but that conflicts are kept."""

    #: From the source, because they are new, or because they have changed.
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Gone from the source.
    removed: tuple[str, ...] = ()
    #: Edited or deleted here, and left like that.
    kept: tuple[str, ...] = ()
    #: Those of them that the source has changed as well.
    conflicts: tuple[str, ...] = ()
    #: Edited here, and about to be put aside.
    replaced: tuple[str, ...] = ()


def plan_merge(
    installed: Mapping[str, str],
    here: Mapping[str, str],
    source: Mapping[str, str],
    *,
    overwrite: bool,
) -> MergePlan:
    """Decide about every file. The mappings have the files' digests."""
    sorted_into: dict[str, list[str]] = {field: [] for field in MergePlan.__struct_fields__}
    for file in sorted({*installed, *here, *source}):
        for field in _fate(installed.get(file), here.get(file), source.get(file), overwrite=overwrite):
            sorted_into[field].append(file)
    return MergePlan(**{field: tuple(files) for field, files in sorted_into.items()})


def _fate(installed: str | None, here: str | None, source: str | None, *, overwrite: bool) -> tuple[str, ...]:
    if here == source:
        return ()
    follow = "added" if here is None else "removed" if source is None else "changed"
    if here == installed:
        return (follow,)
    if source is None and installed is None:
        # Made here, and none of the source's business.
        return ("kept",)
    if overwrite:
        return (follow,) if here is None else (follow, "replaced")
    return ("kept",) if source == installed else ("kept", "conflicts")
