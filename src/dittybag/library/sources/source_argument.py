"""The SOURCE argument of `library add`: a folder or a Git URL."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.errors import LibraryRefused, SourceNotFound
from dittybag.library.relative_paths import printable, replace_surrogates

_CONTROL: Final = re.compile(r"[\x00-\x20\x7f-\x9f\u2028\u2029]")
_HOST: Final = re.compile(r"\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_][A-Za-z0-9._-]*")
_USER: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
#: user@host:path, as in `scp` and Git.
_SCP: Final = re.compile(r"(?P<user>[^@:/]+)@(?P<host>[^@:/]+):(?P<path>[^:].*)")
_REF: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@=,%-]{0,199}")
#: The URL of a folder in the web UI of a Git host.
_BROWSER_URL: Final = re.compile(r"(https://[^/]+/[^/]+/[^/]+)(?:/-)?/(?:tree|src/branch|blob)/([^/]+)/?(.*)")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")

_MAX_LENGTH: Final = 4096


class GitRemote(Struct, frozen=True, kw_only=True):
    """A Git URL and what to fetch from it."""

    scheme: Literal["file", "http", "https", "ssh"]
    #: The URL for Git, which may contain a password.
    address: str
    #: A branch, a tag or a commit.
    ref: str | None = None
    #: Credentials in the URL, to be removed from all output.
    secrets: tuple[str, ...] = ()


class LibrarySource(Struct, frozen=True, kw_only=True):
    """A folder or a Git repository that can be added as a library."""

    kind: Literal["folder", "git"]
    #: An absolute path, or a URL without credentials; safe to show and to store.
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
    if (source := _local_source(text)) is not None:
        return source
    base, mark, ref = text.rpartition("#")
    address = base if mark else text
    checked_ref = _check_ref(ref, address) if mark else None
    if mark and (path := _existing_path(base)) is not None and path.is_dir():
        return _local_repository(path, checked_ref)
    return _parse_remote(address, checked_ref)


def _existing_path(text: str) -> Path | None:
    try:
        path = Path(text).expanduser()
        path.stat()
    except (OSError, RuntimeError, ValueError):
        return None
    return path.absolute()


def _local_source(text: str) -> LibrarySource | None:
    path = _existing_path(text)
    if path is None:
        return None
    if path.is_dir():
        path = Path(_normalise(path))
        if _is_bare_repository(path):
            return _local_repository(path, None)
        return LibrarySource(kind="folder", location=str(path), name=path.name)
    raise LibraryRefused(printable(text), "not a folder; unpack an archive and add its folder")


def _normalise(path: Path) -> str:
    # Not resolved: if the user changes a symbolic link, the next update should follow it.
    from os.path import normpath

    return normpath(path)


def _is_bare_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _local_repository(path: Path, ref: str | None) -> LibrarySource:
    from urllib.parse import quote

    location = _normalise(path)
    if not _is_bare_repository(path) and not (path / ".git").exists():
        raise LibraryRefused(printable(location), f"not a Git repository, so '{ref}' cannot be fetched")
    # A URL, because Git copies a plain path by hard-linking its files.
    address = f"file://{quote(location)}"
    return LibrarySource(
        kind="git",
        location=location if ref is None else f"{location}#{ref}",
        name=path.name.removesuffix(".git"),
        remote=GitRemote(scheme="file", address=address, ref=ref),
    )


def _check_ref(ref: str, address: str) -> str:
    if not _REF.fullmatch(ref) or ".." in ref or "@{" in ref or ref.endswith(("/", ".", ".lock")):
        raise LibraryRefused(
            _redact(address),
            f"'{printable(ref)}' after '#' is not a valid branch, tag or commit",
        )
    return ref


def _redact(address: str) -> str:
    """A URL, possibly malformed, without anything that could be a password."""
    before, at, after = address.partition("?")[0].rpartition("@")
    scheme = before.partition("://")
    return printable(f"{scheme[0]}://{after}" if at and scheme[1] else before + at + after)


def _parse_remote(address: str, ref: str | None) -> LibrarySource:
    redacted = _redact(address)
    if "::" in address.partition("/")[0]:
        raise LibraryRefused(redacted, "this URL makes Git run another program; use an https or ssh URL")
    scheme, mark, rest = address.partition("://")
    if mark and _CONTROL.search(address):
        raise LibraryRefused(redacted, "the URL contains a space or a control character")
    if mark:
        return _parse_url(scheme.lower(), rest, redacted, ref)
    if (parts := _SCP.fullmatch(address)) is not None and not _CONTROL.search(address):
        return _parse_scp(parts["user"], parts["host"], parts["path"], ref)
    hint = ""
    if re.fullmatch(r"[\w-]+(\.[\w-]+)+/[^\s]+", address):
        hint = f". Did you mean https://{address}?"
    raise SourceNotFound(redacted, f"no such file or folder, and not a Git URL{hint}")


def _parse_scp(user: str, host: str, path: str, ref: str | None) -> LibrarySource:
    redacted = f"{user}@{host}:{path}"
    if not _USER.fullmatch(user) or not _HOST.fullmatch(host) or path.startswith("-"):
        raise LibraryRefused(printable(redacted), "not a valid Git URL")
    return _git_source(redacted, GitRemote(scheme="ssh", address=redacted, ref=ref))


def _parse_url(scheme: str, rest: str, redacted: str, ref: str | None) -> LibrarySource:
    network, slash, path = rest.partition("/")
    credentials, at, host_port = network.rpartition("@")
    if scheme == "file":
        if network not in ("", "localhost"):
            raise LibraryRefused(redacted, "a file URL has three slashes, as in file:///srv/prompts.git")
        address = f"file:///{path}"
        return _git_source(address, GitRemote(scheme="file", address=address, ref=ref))
    user, _, password = credentials.partition(":")
    host = re.sub(r":\d{1,5}$", "", host_port)
    _check_url(scheme, redacted, host=host, user=user, path=path)
    if scheme not in ("http", "https", "ssh"):
        raise LibraryRefused(redacted, "this URL scheme is not supported; use an https or ssh URL")
    if scheme == "http" and host not in _LOOPBACK:
        raise LibraryRefused(
            redacted, "http is not encrypted, so the prompts could be changed in transit; use https"
        )
    # ssh needs the user name. With https it may itself be a token.
    public = f"{user}@" if at and scheme == "ssh" else ""
    secrets = [credentials, password] if scheme == "ssh" and password else []
    if at and scheme != "ssh":
        secrets = [credentials, password, user]
    return _git_source(
        f"{scheme}://{public}{host_port}{slash}{path}",
        GitRemote(
            scheme=scheme,  # type: ignore[arg-type]  # checked above
            address=f"{scheme}://{rest}",
            ref=ref,
            secrets=_secret_variants(secrets),
        ),
    )


def _secret_variants(secrets: list[str]) -> tuple[str, ...]:
    from urllib.parse import unquote

    variants = {variant for secret in secrets for variant in (secret, unquote(secret)) if variant}
    return tuple(sorted(variants, key=len, reverse=True))


def _check_url(scheme: str, redacted: str, *, host: str, user: str, path: str) -> None:
    # In "user:some/password@host", part of the password is parsed as a path. It must not be shown or stored.
    misread = "@" in path and not user
    if not _HOST.fullmatch(host) or misread or user.startswith("-") or path.startswith("-"):
        raise LibraryRefused(redacted, "not a valid Git URL")
    if "?" in path:
        raise LibraryRefused(redacted, "the URL has a query string, which might contain a secret; remove it")
    if (browser_url := _BROWSER_URL.fullmatch(f"{scheme}://{host}/{path}")) is not None:
        folder = f" --folder {browser_url[3]}" if browser_url[3] else ""
        raise LibraryRefused(
            redacted, f"this is a web page; the Git URL is {browser_url[1]}#{browser_url[2]}{folder}"
        )


def _git_source(location: str, remote: GitRemote) -> LibrarySource:
    name = re.split(r"[/:]", location.rstrip("/"))[-1].removesuffix(".git")
    if remote.ref is not None:
        location = f"{location}#{remote.ref}"
    return LibrarySource(kind="git", location=location, name=name, remote=remote)
