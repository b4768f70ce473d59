"""The SOURCE argument of `library add`: a folder or a Git URL."""

from __future__ import annotations

import re
from os.path import normpath
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.errors import LibraryRefused, SourceNotFound
from dittybag.library.relative_paths import printable, replace_surrogates

_USER: Final = r"(?P<user>[A-Za-z0-9_][A-Za-z0-9._+-]*)"
_HOST: Final = r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*)"
#: Without white space, control characters, a query, and a rest of a password that contains a slash.
_PATH: Final = r"(?P<path>[^\x00-\x20\x7f-\x9f\u2028\u2029?@-][^\x00-\x20\x7f-\x9f\u2028\u2029?@]*)"
_URL: Final = re.compile(rf"(?P<scheme>https?|ssh)://(?:{_USER}@)?{_HOST}(?::\d{{1,5}})?/{_PATH}")
#: user@host:path, as in `scp` and Git.
_SCP: Final = re.compile(rf"{_USER}@{_HOST}:(?!:){_PATH}")
_FILE_URL: Final = re.compile(rf"file://(?:localhost)?/{_PATH}")
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=,%-]{0,199}")
#: The URL of a folder in the web UI of a Git host.
_BROWSER_URL: Final = re.compile(r"(https://[^/]+/[^/]+/[^/]+)(?:/-)?/(?:tree|src/branch|blob)/([^/]+)/?(.*)")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")

_MAX_LENGTH: Final = 4096


class GitRemote(Struct, frozen=True, kw_only=True):
    """A Git URL and what to fetch from it."""

    scheme: str
    #: The URL for Git, without credentials.
    address: str
    #: A branch, a tag or a commit.
    ref: str | None = None


class LibrarySource(Struct, frozen=True, kw_only=True):
    """A folder or a Git repository that can be added as a library."""

    kind: Literal["folder", "git"]
    #: An absolute path, or a URL.
    location: str
    #: The default name of the library, not normalised.
    name: str
    remote: GitRemote | None = None


def parse_source(text: str) -> LibrarySource:
    """Parse a path or a Git URL. Raises `LibraryRefused` or `SourceNotFound`."""
    if not text or text.startswith("-") or "\0" in text or len(text) > _MAX_LENGTH:
        raise LibraryRefused(printable(text) or "''", "not a folder or a Git URL")
    if replace_surrogates(text) != text:
        # It could not be stored in the record.
        raise LibraryRefused(printable(text), "the name is not valid UTF-8")
    if (path := _existing_path(text)) is not None:
        return _local_source(path)
    address, mark, ref = text.rpartition("#")
    if not mark:
        return _remote_source(text, None)
    if not _REF.fullmatch(ref) or ".." in ref or "@{" in ref or ref.endswith(("/", ".", ".lock")):
        problem = f"'{printable(ref)}' after '#' is not a valid branch, tag or commit"
        raise LibraryRefused(_redact(address), problem)
    path = _existing_path(address)
    return _remote_source(address, ref) if path is None else _local_repository(path, ref)


def _existing_path(text: str) -> Path | None:
    """The path of a file or folder that exists.

    It is not resolved: if the user changes a symbolic link, the next update should follow it.
    """
    try:
        path = Path(text).expanduser()
        path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    return Path(normpath(path.absolute()))


def _local_source(path: Path) -> LibrarySource:
    if not path.is_dir():
        raise LibraryRefused(printable(str(path)), "not a folder; unpack an archive and add its folder")
    if _is_bare_repository(path):
        return _local_repository(path, None)
    return LibrarySource(kind="folder", location=str(path), name=path.name)


def _is_bare_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _local_repository(path: Path, ref: str | None) -> LibrarySource:
    if not _is_bare_repository(path) and not (path / ".git").exists():
        raise LibraryRefused(printable(str(path)), f"not a Git repository, so '{ref}' cannot be fetched")
    # A URL, because Git copies a plain path by hard-linking its files.
    return _git_source(str(path), GitRemote(scheme="file", address=path.as_uri(), ref=ref))


def _remote_source(address: str, ref: str | None) -> LibrarySource:
    shown = _redact(address)
    if "::" in address.partition("/")[0]:
        raise LibraryRefused(shown, "this URL makes Git run another program; use an https or ssh URL")
    if _FILE_URL.fullmatch(address):
        return _git_source(address, GitRemote(scheme="file", address=address, ref=ref))
    if _SCP.fullmatch(address):
        return _git_source(address, GitRemote(scheme="ssh", address=address, ref=ref))
    url = _URL.fullmatch(address)
    if url is None or (url["user"] and url["scheme"] != "ssh"):
        if "://" not in address and "@" not in address:
            hint = f". Did you mean https://{shown}?" if re.match(r"[\w-]+(\.[\w-]+)+/", address) else ""
            raise SourceNotFound(shown, f"no such file or folder, and not a Git URL{hint}")
        problem = (
            "not a valid Git URL; use https://HOST/PATH, ssh://USER@HOST/PATH or file:///PATH, and let a "
            "credential helper of Git provide passwords"
        )
        raise LibraryRefused(shown, problem)
    if url["scheme"] == "http" and url["host"] not in _LOOPBACK:
        problem = "http is not encrypted, so the prompts could be changed in transit; use https"
        raise LibraryRefused(shown, problem)
    if (page := _BROWSER_URL.fullmatch(address)) is not None:
        folder = f" --folder {page[3]}" if page[3] else ""
        raise LibraryRefused(shown, f"this is a web page; the Git URL is {page[1]}#{page[2]}{folder}")
    return _git_source(address, GitRemote(scheme=url["scheme"], address=address, ref=ref))


def _redact(address: str) -> str:
    """A URL, possibly malformed, without anything that could be a password."""
    scheme, mark, rest = address.partition("?")[0].rpartition("://")
    return printable(scheme + mark + rest.rpartition("@")[2] if mark else rest)


def _git_source(location: str, remote: GitRemote) -> LibrarySource:
    name = re.split(r"[/:]", location.rstrip("/"))[-1].removesuffix(".git")
    return LibrarySource(
        kind="git",
        location=location if remote.ref is None else f"{location}#{remote.ref}",
        name=name,
        remote=remote,
    )
