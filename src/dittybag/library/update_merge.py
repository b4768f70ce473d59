"""Three-way merge of a library's files during an update.

Each file is compared in three versions: as installed, as it is locally, and as it is in the source. Files
without local edits follow the source. Files with local edits are kept; if the source has changed them too,
they are reported as conflicts. Deleting a file is an edit: it stays deleted, and if the source changes it
later, that is reported once.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class MergePlan(Struct, frozen=True, kw_only=True):
    """What to do with each file. The groups do not overlap, except that conflicts are also kept."""

    #: New in the source, and changed in the source.
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    #: Removed from the source.
    removed: tuple[str, ...] = ()
    #: Edited or deleted locally, and left unchanged.
    kept: tuple[str, ...] = ()
    #: The kept files that also changed in the source.
    conflicts: tuple[str, ...] = ()
    #: Edited locally, to be backed up and replaced.
    replaced: tuple[str, ...] = ()


def plan_merge(
    installed: Mapping[str, str],
    local: Mapping[str, str],
    source: Mapping[str, str],
    *,
    overwrite: bool,
) -> MergePlan:
    """Decide what to do with every file. The mappings contain the digests of the files."""
    plan: dict[str, list[str]] = {field: [] for field in MergePlan.__struct_fields__}
    for file in sorted({*installed, *local, *source}):
        for field in _decide(installed.get(file), local.get(file), source.get(file), overwrite=overwrite):
            plan[field].append(file)
    return MergePlan(**{field: tuple(files) for field, files in plan.items()})


def _decide(
    installed: str | None, local: str | None, source: str | None, *, overwrite: bool
) -> tuple[str, ...]:
    if local == source:
        return ()
    action = "added" if local is None else "removed" if source is None else "changed"
    if local == installed:
        return (action,)
    if source is None and installed is None:
        # A local file that the source never had.
        return ("kept",)
    if overwrite:
        return (action,) if local is None else (action, "replaced")
    return ("kept",) if source == installed else ("kept", "conflicts")
