"""Sources: what the text after `library add` means."""

from __future__ import annotations

import re
import stat
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.errors import LibraryRefused, SourceNotFound
from dittybag.library.relative_paths import replace_surrogates, shown

_CONTROL: Final = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
#: user@host:path, as `scp` and Git understand it.
_SCP: Final = re.compile(r"(?P<user>[^@:/]+)@(?P<host>[^@:/]+):(?P<path>[^:].*)")
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=,%-]{0,199}")
#: An address of a folder in a browser.
_BROWSED: Final = re.compile(r"(https://[^/]+/[^/]+/[^/]+)(?:/-)?/(?:tree|src/branch|blob)/([^/]+)/?(.*)")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")

_MAGIC: Final = (b"PK\3\4", b"PK\5\6")
_LONGEST: Final = 4096


class GitRemote(Struct, frozen=True, kw_only=True):
    """Where Git finds something."""

    scheme: Literal["file", "http", "https", "ssh"]
    #: What Git is told, possibly with a password.
    address: str
    #: A branch, a tag or a commit.
    ref: str | None = None
    #: What nobody may see.
    secrets: tuple[str, ...] = ()


class LibrarySource(Struct, frozen=True, kw_only=True):
    """Something a library can be made of."""

    kind: Literal["folder", "git", "zip"]
    #: What can be told and kept: an absolute path, or an address without credentials.
    location: str
    #: What a library made of it is called, if nobody says otherwise; not normalised.
    name: str
    repository: GitRemote | None = None


def recognise(text: str) -> LibrarySource:
    """What `text` means. Raises `LibraryRefused` or `SourceNotFound`, saying what was tried."""
    if not text or text.startswith("-") or "\0" in text or len(text) > _LONGEST:
        raise LibraryRefused(
            shown(text) or "''", "is neither a folder, a zip file nor the address of a Git repository"
        )
    if replace_surrogates(text) != text:
        # Nobody could write it down.
        raise LibraryRefused(shown(text), "has a name that is not UTF-8")
    if (source := _on_this_machine(text)) is not None:
        return source
    base, mark, ref = text.rpartition("#")
    address = base if mark else text
    checked_ref = _ref(ref, address) if mark else None
    if mark and (path := _existing(base)) is not None and path.is_dir():
        return _local_repository(path, checked_ref)
    return _remote(address, checked_ref)


def _existing(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    return path.absolute()


def _on_this_machine(text: str) -> LibrarySource | None:
    path = _existing(text)
    if path is None:
        return None
    if path.is_dir():
        path = Path(_without_dots(path))
        if _is_bare_repository(path):
            return _local_repository(path, None)
        return LibrarySource(kind="folder", location=str(path), name=path.name)
    if not stat.S_ISREG(path.stat().st_mode):
        raise LibraryRefused(shown(text), "is neither a file nor a folder")
    if path.suffix.lower() == ".zip" or _begins_like_a_zip(path):
        return LibrarySource(kind="zip", location=_without_dots(path), name=path.stem)
    raise LibraryRefused(shown(text), "is a file, but no zip archive; give the folder it is in")


def _without_dots(path: Path) -> str:
    # Not resolved: a link that its owner changes later should be followed again.
    from os.path import normpath

    return normpath(path)


def _begins_like_a_zip(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) in _MAGIC
    except OSError:
        return False


def _is_bare_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _local_repository(path: Path, ref: str | None) -> LibrarySource:
    from urllib.parse import quote

    where = _without_dots(path)
    if not _is_bare_repository(path) and not (path / ".git").exists():
        raise LibraryRefused(shown(where), f"is no Git repository, so there is no '{ref}' in it")
    # As an address, because Git copies a path by linking its files.
    address = f"file://{quote(where)}"
    return LibrarySource(
        kind="git",
        location=where if ref is None else f"{where}#{ref}",
        name=path.name.removesuffix(".git"),
        repository=GitRemote(scheme="file", address=address, ref=ref),
    )


def _ref(ref: str, address: str) -> str:
    if not _REF.fullmatch(ref) or ".." in ref or "@{" in ref or ref.endswith(("/", ".", ".lock")):
        raise LibraryRefused(
            _told(address), f"'{shown(ref)}' after '#' can be no branch, tag or commit of a Git repository"
        )
    return ref


def _told(address: str) -> str:
    """An address that may be malformed, without anything that might be a password."""
    before, at, after = address.partition("?")[0].rpartition("@")
    scheme = before.partition("://")
    return shown(f"{scheme[0]}://{after}" if at and scheme[1] else before + at + after)


def _remote(address: str, ref: str | None) -> LibrarySource:
    told = _told(address)
    if "::" in address.partition("/")[0]:
        raise LibraryRefused(told, "would make Git run another program; give an https or ssh address")
    scheme, mark, rest = address.partition("://")
    if mark and _CONTROL.search(address):
        raise LibraryRefused(told, "has a blank or a control character in it")
    if mark:
        return _by_url(scheme.lower(), rest, told, ref)
    if (parts := _SCP.fullmatch(address)) is not None and not _CONTROL.search(address):
        return _by_scp(parts["user"], parts["host"], parts["path"], ref)
    hint = ""
    if re.fullmatch(r"[\w-]+(\.[\w-]+)+/[^\s]+", address):
        hint = f". Did you mean https://{address}?"
    raise SourceNotFound(told, f"there is no such folder or file, and it is no Git address{hint}")


def _by_scp(user: str, host: str, path: str, ref: str | None) -> LibrarySource:
    told = f"{user}@{host}:{path}"
    if not _USER.fullmatch(user) or not _HOST.fullmatch(host) or path.startswith("-"):
        raise LibraryRefused(shown(told), "is no valid Git address")
    return _source(told, GitRemote(scheme="ssh", address=told, ref=ref))


def _by_url(scheme: str, rest: str, told: str, ref: str | None) -> LibrarySource:
    network, slash, path = rest.partition("/")
    credentials, at, place = network.rpartition("@")
    if scheme == "file":
        if network not in ("", "localhost"):
            raise LibraryRefused(told, "a file address has three slashes, as in file:///srv/prompts.git")
        address = f"file:///{path}"
        return _source(address, GitRemote(scheme="file", address=address, ref=ref))
    user, _, password = credentials.partition(":")
    host = re.sub(r":\d{1,5}$", "", place)
    _check_url(scheme, told, host=host, user=user, path=path)
    if scheme not in ("http", "https", "ssh"):
        raise LibraryRefused(told, "cannot be fetched from; give an https or ssh address")
    if scheme == "http" and host not in _LOOPBACK:
        raise LibraryRefused(
            told, "is not encrypted, and whoever is on the way could change the prompts; use https"
        )
    # A user's name is needed with ssh, and may itself be a token with https.
    public = f"{user}@" if at and scheme == "ssh" else ""
    secrets = [credentials, password] if scheme == "ssh" and password else []
    if at and scheme != "ssh":
        secrets = [credentials, password, user]
    return _source(
        f"{scheme}://{public}{place}{slash}{path}",
        GitRemote(
            scheme=scheme,  # type: ignore[arg-type]  # one of them, as was checked
            address=f"{scheme}://{rest}",
            ref=ref,
            secrets=_spellings(secrets),
        ),
    )


def _spellings(secrets: list[str]) -> tuple[str, ...]:
    from urllib.parse import unquote

    spelt = {spelling for secret in secrets for spelling in (secret, unquote(secret)) if spelling}
    return tuple(sorted(spelt, key=len, reverse=True))


def _check_url(scheme: str, told: str, *, host: str, user: str, path: str) -> None:
    # "user:some/password@host": a password that is taken for a host and a path must not be told or kept.
    misread = "@" in path and not user
    if not _HOST.fullmatch(host) or misread or user.startswith("-") or path.startswith("-"):
        raise LibraryRefused(told, "is no valid Git address")
    if "?" in path:
        raise LibraryRefused(
            told, "has a question mark in it, and what follows might be secret; leave it out"
        )
    if path.lower().endswith(".zip"):
        raise LibraryRefused(told, "is a file to download; download it, and add the file")
    if (browsed := _BROWSED.fullmatch(f"{scheme}://{host}/{path}")) is not None:
        folder = f" --folder {browsed[3]}" if browsed[3] else ""
        raise LibraryRefused(
            told, f"is an address for browsers; the one for Git is {browsed[1]}#{browsed[2]}{folder}"
        )


def _source(location: str, repository: GitRemote) -> LibrarySource:
    name = re.split(r"[/:]", location.rstrip("/"))[-1].removesuffix(".git")
    if repository.ref is not None:
        location = f"{location}#{repository.ref}"
    return LibrarySource(kind="git", location=location, name=name, repository=repository)
