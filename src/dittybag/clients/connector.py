"""Making Dittybag known to a client, taking that back, and telling how things stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from dittybag.clients import config_files
from dittybag.clients.client_errors import Busy, ClientError, Foreign, Malformed, Refused
from dittybag.clients.config_files import Changed, Contents
from dittybag.clients.config_format import Found, Put
from dittybag.clients.edit_records import Edit, Records
from dittybag.clients.known_clients import Client, Machine, Scope
from dittybag.clients.reversible_edits import Cut, fit, followed, moved, spliced, taken_back
from dittybag.clients.unified_diff import unified

_HOME: Final = "DITTYBAG_HOME"
#: What an entry of ours says; anything else in it is its owner's.
_OURS: Final = ("type", "command", "args", "env")
_ATTEMPTS: Final = 5

State = Literal["connected", "unchanged", "updated", "removed", "absent"]


class Launch(Struct, frozen=True):
    """How a client starts Dittybag."""

    command: str
    #: What makes the command this program, before its own arguments.
    prefix: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ("serve",)
    variables: Mapping[str, str] = {}

    def entry(self, client: Client) -> dict[str, Any]:
        """What a client's file says about it."""
        entry: dict[str, Any] = {"type": "stdio"} if client.is_typed else {}
        entry |= {"command": self.command, "args": [*self.prefix, *self.arguments]}
        return entry | ({"env": dict(self.variables)} if self.variables else {})

    def starts(self, value: Any) -> bool:
        """Whether an entry starts this very program."""
        start = [*self.prefix, "serve"]
        return _command(value) == self.command and _arguments(value)[: len(start)] == start


class Target(Struct, frozen=True):
    """An entry in a file of a client, whether it is there or not."""

    client: Client
    scope: Scope
    #: The file itself, not a link to it.
    file: Path
    name: str

    @staticmethod
    def of(client: Client, scope: Scope, machine: Machine, name: str) -> Target | None:
        """Nothing if the client has no file of this scope. Raises `Refused`."""
        file = client.file(scope, machine)
        if file is None:
            return None
        real = _resolved(file)
        if not _is_text(str(real)):
            raise Refused(ascii(str(real)), "its name is not text in UTF-8")
        return Target(client, scope, real, name)


class Outcome(Struct, frozen=True, kw_only=True):
    """What was done, or would be."""

    state: State
    backup: str | None = None
    diff: str = ""
    #: An entry that was there before is there again, or was put aside.
    has_previous: bool = False


class Standing(Struct, frozen=True, kw_only=True):
    """How things stand between a client and Dittybag."""

    state: Literal["connected", "other", "absent", "unreadable"]
    #: The entries that start this program.
    names: tuple[str, ...] = ()
    problem: str = ""


class _Plan(Struct, frozen=True, kw_only=True):
    """An edit that can be made."""

    state: State
    text: str = ""
    edit: Edit | None = None
    has_previous: bool = False
    #: The file goes, with these folders.
    is_deletion: bool = False
    folders: tuple[str, ...] = ()


def connect(target: Target, launch: Launch, home: str, *, dry_run: bool = False) -> Outcome:
    """Put Dittybag into a client's file. Raises `ClientError`."""
    entry = launch.entry(target.client)
    _check_texts(target, entry)
    return _carried_out(target, home, lambda text, edits: _put(target, text, entry, edits), dry_run=dry_run)


def disconnect(target: Target, home: str, *, dry_run: bool = False) -> Outcome:
    """Make a client's file what it was before Dittybag was put into it. Raises `ClientError`."""
    return _carried_out(target, home, lambda text, edits: _taken(target, text, edits), dry_run=dry_run)


def standing(target: Target, launch: Launch) -> Standing:
    """Whether Dittybag is in a client's file, under whatever name."""
    try:
        entries = target.client.format.entries(config_files.read(target.file).text)
    except (ClientError, Malformed) as error:
        problem = error.problem if isinstance(error, ClientError) else str(error)
        return Standing(state="unreadable", problem=problem)
    if names := tuple(name for name, value in entries.items() if launch.starts(value)):
        return Standing(state="connected", names=names)
    return Standing(state="other" if target.name in entries else "absent")


def _carried_out(
    target: Target, home: str, plan: Callable[[str, tuple[Edit, ...]], _Plan], *, dry_run: bool
) -> Outcome:
    records = Records(home)
    if dry_run:
        before = config_files.read(target.file)
        planned = _planned(target, plan, before, records)
        after = before.text if planned.state in ("unchanged", "absent") else planned.text
        return Outcome(
            state=planned.state,
            diff=unified(before.text, after, str(target.file)),
            has_previous=planned.has_previous,
        )
    with records.locked(target.file):
        for _ in range(_ATTEMPTS):
            before = config_files.read(target.file)
            planned = _planned(target, plan, before, records)
            try:
                return _written(target, records, before, planned)
            except Changed:
                continue
    raise Busy(str(target.file), "somebody else keeps changing it")


def _planned(
    target: Target, plan: Callable[[str, tuple[Edit, ...]], _Plan], before: Contents, records: Records
) -> _Plan:
    edits = records.edits(target.file, target.name)
    try:
        planned = plan(before.text, edits)
    except Malformed as error:
        raise Refused(str(target.file), str(error)) from None
    if planned.edit is not None and before.data is None:
        return msgspec.structs.replace(planned, edit=msgspec.structs.replace(planned.edit, with_file=True))
    return planned


def _written(target: Target, records: Records, before: Contents, planned: _Plan) -> Outcome:
    """Make an edit for good: first the copy and the record, then the file."""
    if planned.state == "unchanged":
        return Outcome(state="unchanged")
    if planned.state == "absent":
        records.forget(target.file, target.name)
        return Outcome(state="absent")
    backup = None
    if before.data is not None:
        label = f"{target.client.name}-{target.scope}"
        backup = str(records.back_up(target.file, before.data, label))
    if planned.is_deletion:
        config_files.remove(target.file, before, list(planned.folders))
    else:
        edit = planned.edit
        if edit is not None:
            records.keep((edit, *records.edits(target.file, target.name)[:1]))
        data = before.encoded(planned.text)
        folders = config_files.replace(target.file, data, before, is_private=target.scope == "user")
        if edit is not None:
            records.keep((msgspec.structs.replace(edit, with_folders=edit.with_folders or tuple(folders)),))
    if planned.edit is None:
        records.forget(target.file, target.name)
    return Outcome(state=planned.state, backup=backup, has_previous=planned.has_previous)


def _put(target: Target, text: str, entry: dict[str, Any], edits: tuple[Edit, ...]) -> _Plan:
    form, name = target.client.format, target.name
    found = form.find(text, name)
    if found is not None and _says(found.value, entry):
        return _Plan(state="unchanged")
    value = entry if found is None else _merged(found.value, entry)
    put = form.put(text, name, value)
    after, splices = spliced(text, put.cuts)
    now = form.find(after, name)
    if now is None or not form.is_put(text, after, name, value):
        raise Malformed("it is written in a way in which nothing can be added safely")
    if found is not None and edits and _is_ours(found.value):
        edit = _continued(edits, text, found, put, now)
    else:
        edit = Edit(
            file=str(target.file),
            name=name,
            splices=moved(splices, -now.at),
            previous=None if found is None else found.text,
            with_container=put.with_container,
            with_root=put.with_root,
        )
    state: State = "connected" if found is None else "updated"
    return _Plan(state=state, text=after, edit=edit, has_previous=edit.previous is not None)


def _continued(edits: tuple[Edit, ...], text: str, found: Found, put: Put, now: Found) -> Edit:
    """An edit of an entry that came from an edit: one record takes both back."""
    for edit in edits:
        splices = moved(edit.splices, found.at)
        if fit(text, splices):
            both = followed(splices, text, put.cuts)
            return msgspec.structs.replace(edit, splices=moved(both, -now.at))
    return msgspec.structs.replace(edits[0], splices=())


def _taken(target: Target, text: str, edits: tuple[Edit, ...]) -> _Plan:
    form, name = target.client.format, target.name
    found = form.find(text, name)
    if found is None:
        return _Plan(state="absent")
    for after, edit in _ways_back(target, text, found, edits):
        try:
            is_right = form.is_same_elsewhere(text, after, name)
            is_there = form.find(after, name) is not None
        except Malformed:
            continue
        previous = None if edit is None else edit.previous
        if is_right and is_there == (previous is not None):
            is_deletion = edit is not None and edit.with_file and not after.strip()
            return _Plan(
                state="removed",
                text=after,
                has_previous=previous is not None,
                is_deletion=is_deletion,
                folders=edit.with_folders if edit is not None and is_deletion else (),
            )
    raise Malformed(f"'{name}' is written in a way in which it cannot be taken out safely")


def _ways_back(
    target: Target, text: str, found: Found, edits: tuple[Edit, ...]
) -> Iterator[tuple[str, Edit | None]]:
    """Texts without the entry, or with what was there before it; the most exact first."""
    form, name = target.client.format, target.name
    for edit in edits:
        splices = moved(edit.splices, found.at)
        if fit(text, splices):
            yield taken_back(text, splices), edit
    if not _is_ours(found.value):
        raise Foreign(str(target.file), f"its entry '{name}' starts another program")
    last = edits[0] if edits else None
    ways: Sequence[tuple[Cut, ...]]
    if last is None:
        ways = form.take(text, name, container=False, root=False)
    elif last.previous is None:
        ways = form.take(text, name, container=last.with_container, root=last.with_root)
    else:
        ways = (form.give_back(text, name, last.previous),)
    for cuts in ways:
        yield spliced(text, cuts)[0], last


def _says(value: Any, entry: Mapping[str, Any]) -> bool:
    """Whether an entry already starts the same in the same way, whatever else it says."""
    return (
        isinstance(value, dict)
        and all(value.get(key) == entry[key] for key in ("command", "args"))
        and value.get("type", "stdio") == "stdio"
        and _variables(value).get(_HOME) == _variables(entry).get(_HOME)
    )


def _merged(value: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry anew, with what its owner had added to one of ours."""
    if not _is_ours(value):
        return dict(entry)
    variables = {name: text for name, text in _variables(value).items() if name != _HOME}
    variables |= _variables(entry)
    others = {key: part for key, part in value.items() if key not in _OURS}
    return {**entry, **({"env": variables} if variables else {}), **others}


def _is_ours(value: Any) -> bool:
    """Whether an entry starts Dittybag, of whatever installation."""
    arguments = _arguments(value)
    if "serve" not in arguments:
        return False
    before = arguments[: arguments.index("serve")]
    program = _command(value).replace("\\", "/").rpartition("/")[2]
    return program.removesuffix(".exe") == "dittybag" or "dittybag" in before


def _command(value: Any) -> str:
    command = value.get("command") if isinstance(value, dict) else None
    return command if isinstance(command, str) else ""


def _arguments(value: Any) -> list[str]:
    arguments = value.get("args") if isinstance(value, dict) else None
    return [str(part) for part in arguments] if isinstance(arguments, list) else []


def _variables(value: Mapping[str, Any]) -> dict[str, Any]:
    variables = value.get("env")
    return dict(variables) if isinstance(variables, dict) else {}


def _check_texts(target: Target, entry: Mapping[str, Any]) -> None:
    """Raises `Refused` for what a client would not hand on as it is written."""
    texts = [entry["command"], *entry["args"], *_variables(entry).values()]
    for text in texts:
        if not _is_text(text):
            raise Refused(str(target.file), f"{text!a} is not text that it could hold")
        if target.client.would_replace(text):
            title = target.client.title
            raise Refused(str(target.file), f"{title} would take a part of '{text}' for a variable")


def _is_text(text: str) -> bool:
    """Whether a text, such as the name of a file, can be written down."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _resolved(file: Path) -> Path:
    """The file that is meant, through links. A loop of links is left for the system to refuse."""
    try:
        return file.resolve()
    except (OSError, RuntimeError):
        return file.absolute()
