"""Settings from options, environment variables and defaults, in this order.

No other module reads the environment.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, get_args

from msgspec import Struct

from dittybag.domain.projects import AUTOMATIC, DEFAULT_PROJECT

if TYPE_CHECKING:
    from dittybag.domain.rate_limits import RateLimit

DEFAULT_WORKSPACE: Final = "default"
DEFAULT_PROFILE: Final = "all"
#: The profile of the servers that `dittybag connect` configures.
CONNECTED_PROFILE: Final = "agent"
DEFAULT_HTTP: Final = ("127.0.0.1", 8765)

_FILE_ENDING: Final = ".db"
_WORKSPACE: Final = r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}"
_YES: Final = ("1", "true", "yes", "on")
_NO: Final = ("", "0", "false", "no", "off")
_TEMPORARY_FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # nothing is written there
#: Maximum number of requests in a rate limit or its burst.
_MAX_REQUESTS: Final = 1_000_000
_MAX_URL_BYTES: Final = 10_000


Auth = Literal["off", "tokens"]
_AUTHS: Final[tuple[Auth, ...]] = get_args(Auth)
#: A host name or address as in the Host header, without a port.
_HOST: Final = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\]"


class SettingsError(Exception):
    """An option or variable has an invalid value; the message names it and the valid values."""


class OAuth(Struct, frozen=True):
    """The OAuth issuer whose tokens are accepted besides Dittybag's own."""

    issuer: str
    audience: str
    jwks: str = ""


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of a process."""

    #: The data folder.
    home: str
    #: Whether `DITTYBAG_HOME` sets the data folder.
    has_custom_home: bool = False
    #: The path of the database file, or the URL of a server.
    database: str
    #: The URLs of read replicas of a PostgreSQL server.
    read_replicas: tuple[str, ...] = ()
    #: Library folders of the server that the profile replaces, if it has any.
    foreign_libraries: tuple[str, ...] = ()
    #: Those that commands show: also the ones that the environment names.
    known_libraries: tuple[str, ...] = ()
    #: The name of the project, or `auto` for the project of the folder.
    project: str = DEFAULT_PROJECT
    #: The folder that Claude Code works in, if it has started this process.
    client_folder: str | None = None
    #: The home folder of the user.
    user_home: str = ""
    profile: str = DEFAULT_PROFILE
    read_only: bool = False
    toolsets: tuple[str, ...] = ()
    #: The address to listen on for HTTP; `None` to serve one client on standard input and output.
    http: tuple[str, int] | None = None
    #: How HTTP clients authenticate.
    auth: Auth = "off"
    oauth: OAuth | None = None
    #: How many requests a token may make; `None` for no limit.
    rate_limit: RateLimit | None = None
    #: Further accepted host names.
    allowed_hosts: tuple[str, ...] = ()
    #: A server over HTTP exits after this time without requests; `None` to go on.
    idle_seconds: int | None = None
    #: Whether to log every HTTP request.
    access_log: bool = False
    #: The actor in the change log; `None` for the name of the client.
    actor: str | None = None
    #: Whether this is the demo, whose workspace does not last.
    is_demo: bool = False
    #: Whether a server makes a backup of a SQLite file every day.
    auto_backup: bool = True
    #: Folders for temporary files, whose databases are not backed up automatically.
    temporary_folders: tuple[str, ...] = ()

    @property
    def has_automatic_project(self) -> bool:
        return self.project == AUTOMATIC

    @property
    def is_default_database(self) -> bool:
        return self.database == workspace_file(self.home, DEFAULT_WORKSPACE)


def settings(
    environment: Mapping[str, str],
    *,
    workspace: str | None = None,
    db: str | None = None,
    read_replica: Sequence[str] = (),
    project: str | None = None,
    profile: str | None = None,
    read_only: bool = False,
    toolsets: str | None = None,
    http: str | None = None,
    auth: str | None = None,
    rate_limit: str | None = None,
    rate_limit_burst: str | None = None,
    allow_host: Sequence[str] = (),
    access_log: bool = False,
    until_idle: str | None = None,
) -> Settings:
    """Return the settings from command-line options and the environment. Raises `SettingsError`."""
    if workspace is not None and db is not None:
        raise SettingsError("use either --workspace or --db, not both")
    listed = toolsets if toolsets is not None else environment.get("DITTYBAG_TOOLSETS", "")
    profile = profile or environment.get("DITTYBAG_PROFILE") or DEFAULT_PROFILE
    chosen = _auth(auth if auth is not None else environment.get("DITTYBAG_AUTH") or "off")
    address = _address(http if http is not None else environment.get("DITTYBAG_HTTP") or None, chosen)
    if auth is not None and chosen != "off" and address is None:
        raise SettingsError(f"--auth {auth} requires --http: standard input serves a single local client")
    if chosen == "off" and not (rate_limit is rate_limit_burst is None):
        raise SettingsError("a rate limit requires --auth tokens: requests are counted by token")
    if until_idle is not None and address is None:
        raise SettingsError("--until-idle requires --http: on standard input, the client ends the server")
    project = project or environment.get("DITTYBAG_PROJECT") or DEFAULT_PROJECT
    return Settings(
        home=home(environment),
        has_custom_home=bool(environment.get("DITTYBAG_HOME")),
        database=_database(environment, workspace, db),
        read_replicas=_replicas(read_replica or environment.get("DITTYBAG_READ_REPLICAS", "").split()),
        project=project,
        client_folder=environment.get("CLAUDE_PROJECT_DIR") or None,
        user_home=os.path.expanduser("~"),  # noqa: PTH111
        profile=profile,
        foreign_libraries=(_twig_directory(environment),) if profile == "twig" else (),
        known_libraries=known_libraries(environment, profile),
        read_only=read_only or _boolean(environment, "DITTYBAG_READ_ONLY"),
        toolsets=tuple(name for item in listed.split(",") if (name := item.strip())),
        http=address,
        auth=chosen,
        oauth=_oauth(environment) if chosen != "off" else None,
        rate_limit=_rate_limit(environment, rate_limit, rate_limit_burst) if chosen != "off" else None,
        allowed_hosts=_host_names(allow_host or environment.get("DITTYBAG_ALLOWED_HOSTS", "").split(",")),
        idle_seconds=None if until_idle is None else _seconds("--until-idle", until_idle),
        access_log=access_log or _boolean(environment, "DITTYBAG_ACCESS_LOG"),
        actor=environment.get("DITTYBAG_ACTOR") or None,
        auto_backup=_boolean(environment, "DITTYBAG_AUTO_BACKUP", default="on"),
        temporary_folders=(*_TEMPORARY_FOLDERS, *filter(None, [environment.get("TMPDIR")])),
    )


def settings_from_process(**flags: str | bool | Sequence[str] | None) -> Settings:
    """Return the settings of this process."""
    return settings(os.environ, **flags)  # type: ignore[arg-type]  # flags are named like the parameters


def environment_with_home(home: str) -> dict[str, str]:
    """Return this process's environment with another data folder, for a workspace that does not last."""
    return {**os.environ, "DITTYBAG_HOME": home, "DITTYBAG_AUTO_BACKUP": "off"}


def environment_with_database(settings: Settings) -> dict[str, str]:
    """Return this process's environment with the database of these settings.

    Other users of the machine see the command line of a process, but not its environment, where a password
    may be.
    """
    database = settings.database
    if "://" not in database:
        database = os.path.abspath(database)  # noqa: PTH100
    return {**environment_with_home(settings.home), "DITTYBAG_DATABASE_URL": database}


def can_show_browser(environment: Mapping[str, str]) -> bool:
    """Whether a browser can open a window: not over SSH, and not on a text console."""
    if environment.get("BROWSER"):
        return True
    if str(sys.platform) in ("darwin", "win32"):
        return not environment.get("SSH_CONNECTION")
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def local_user_name() -> str:
    """Return the name of the local user, the actor in the change log."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        # In a container, the user id may have no name.
        return "somebody"


def _database(environment: Mapping[str, str], workspace: str | None, db: str | None) -> str:
    if db is not None:
        # An empty value comes from an unset variable in a script; it must not select the default database.
        return parse_database(db)
    if workspace is None and (url := _database_url(environment)):
        return parse_database(url)
    name = DEFAULT_WORKSPACE if workspace is None else workspace
    if not re.fullmatch(_WORKSPACE, name):
        raise SettingsError(f"'{name}' is not a valid workspace name: use letters, digits, '-', '_' and '.'")
    return workspace_file(home(environment), name)


def _database_url(environment: Mapping[str, str]) -> str | None:
    """Return the URL of the variable, or of the file that it names: a secret of a container is a file."""
    if url := environment.get("DITTYBAG_DATABASE_URL"):
        return url
    if not (path := environment.get("DITTYBAG_DATABASE_URL_FILE")):
        return None
    from dittybag import files

    try:
        url = files.read(path, _MAX_URL_BYTES, follow_links=True).decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = files.describe(error) if isinstance(error, OSError) else "it is not text"
        raise SettingsError(
            f"the file of DITTYBAG_DATABASE_URL_FILE cannot be read: {reason}: {path}"
        ) from None
    if not url:
        # An empty file must not select the default database.
        raise SettingsError(f"the file of DITTYBAG_DATABASE_URL_FILE is empty: {path}")
    return url


def _replicas(urls: Sequence[str]) -> tuple[str, ...]:
    if not all(url.startswith(("postgresql://", "postgres://")) for url in urls):
        # Without the value, which may be a URL with a password.
        raise SettingsError("--read-replica must be a URL such as postgresql://user:password@host/database")
    return tuple(urls)


def workspace_file(home: str, name: str) -> str:
    """Return the path of a workspace in the data folder."""
    return os.path.join(home, f"{name}{_FILE_ENDING}")  # noqa: PTH118  # pathlib is slow to import


def workspace_names(home: str) -> list[str]:
    """Return the names of the databases in a folder, sorted."""
    try:
        files = sorted(os.listdir(home))  # noqa: PTH208
    except OSError:
        return []
    names = (file.removesuffix(_FILE_ENDING) for file in files if file.endswith(_FILE_ENDING))
    return [name for name in names if re.fullmatch(_WORKSPACE, name)]


def _auth(text: str) -> Auth:
    for known in _AUTHS:
        if text.strip().lower() == known:
            return known
    raise SettingsError(f"--auth must be one of {', '.join(_AUTHS)}, not '{text}'")


def _oauth(environment: Mapping[str, str]) -> OAuth | None:
    issuer, audience, jwks = (
        environment.get(name, "").strip()
        for name in ("DITTYBAG_OAUTH_ISSUER", "DITTYBAG_OAUTH_AUDIENCE", "DITTYBAG_OAUTH_JWKS")
    )
    if not (issuer or audience or jwks):
        return None
    if not (issuer and audience):
        raise SettingsError("OAuth needs both DITTYBAG_OAUTH_ISSUER and DITTYBAG_OAUTH_AUDIENCE")
    return OAuth(issuer, audience, jwks)


def _rate_limit(environment: Mapping[str, str], rate: str | None, burst: str | None) -> RateLimit | None:
    """Parse `--rate-limit`, such as 50/s, and `--rate-limit-burst`."""
    # Imported here because servers without tokens do not need it.
    from dittybag.domain.rate_limits import PERIODS, RateLimit, default_burst

    rate = rate if rate is not None else environment.get("DITTYBAG_RATE_LIMIT") or None
    burst = burst if burst is not None else environment.get("DITTYBAG_RATE_LIMIT_BURST") or None
    size = None if burst is None else _request_count(burst)
    if burst is not None and size is None:
        raise SettingsError(f"--rate-limit-burst must be an integer from 1 to {_MAX_REQUESTS}, not '{burst}'")
    if rate is None:
        return RateLimit() if size is None else RateLimit(burst=size)
    if rate.strip().lower() == "off":
        return None
    number, _, period = rate.partition("/")
    requests, seconds = _request_count(number), PERIODS.get(period.strip().lower())
    if requests is None or seconds is None:
        raise SettingsError(
            "--rate-limit must be a number of requests per second, minute or hour, from 1 to "
            f"{_MAX_REQUESTS}, such as 50/s, 3000/m or 10000/h, or off, not '{rate}'"
        )
    return RateLimit(requests, seconds, size or default_burst(requests, seconds))


def _request_count(text: str) -> int | None:
    text = text.strip()
    # The length is checked first: a long number takes long to convert.
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_REQUESTS))
    return int(text) if is_number and 1 <= int(text) <= _MAX_REQUESTS else None


def _seconds(option: str, text: str) -> int:
    """Parse a time such as 90s, 15m or 2h."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})([smh])", text.strip().lower())
    if found is None:
        raise SettingsError(f"{option} must be a time such as 90s, 15m or 2h, not '{text}'")
    return int(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2]]


def _host_names(names: Sequence[str]) -> tuple[str, ...]:
    given = tuple(name.strip().lower() for name in names if name.strip())
    for name in given:
        if not re.fullmatch(_HOST, name):
            raise SettingsError(
                f"--allow-host must be a host name such as dittybag.example.org, without a port, not '{name}'"
            )
    return given


def _address(text: str | None, auth: Auth) -> tuple[str, int] | None:
    """Parse the address of `--http`: HOST:PORT, or one of the two."""
    if text is None:
        return None
    text = text.strip() or f"{DEFAULT_HTTP[0]}:{DEFAULT_HTTP[1]}"
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]") or (":" in host and not host.endswith("]")):
        # Only one of the two, or an IPv6 address without brackets.
        host, port = ("", text) if text.isdigit() else (text, "")
    host = host.removeprefix("[").removesuffix("]") or DEFAULT_HTTP[0]
    if port and not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise SettingsError(
            f"--http must be an address such as {DEFAULT_HTTP[0]}:{DEFAULT_HTTP[1]}, not '{text}'"
        )
    is_loopback = host in ("localhost", "::1") or re.fullmatch(r"127(\.\d{1,3}){3}", host)
    if auth == "off" and not is_loopback:
        raise SettingsError(
            f"without authentication, anyone who can reach {host} could read and change everything: use "
            "--auth tokens and create tokens with dittybag token create, or listen on 127.0.0.1"
        )
    return host, int(port) if port else DEFAULT_HTTP[1]


def parse_database(url: str) -> str:
    """Parse `--db`: the path of a file, a URL such as sqlite:///path, or the URL of a server."""
    if url.startswith(("postgresql://", "postgres://")):
        return url
    path = url.removeprefix("sqlite://") if url.startswith("sqlite://") else url
    if path.startswith("/") and url.startswith("sqlite:///") and not url.startswith("sqlite:////"):
        # As in SQLAlchemy URLs: three slashes for a relative path, four for an absolute path.
        path = path[1:]
    if not path or "\0" in path:
        raise SettingsError("--db must be the path of a file or the URL of a server")
    return os.path.expanduser(path)  # noqa: PTH111


def home(environment: Mapping[str, str]) -> str:
    """Return the data folder."""
    if chosen := environment.get("DITTYBAG_HOME"):
        return os.path.abspath(os.path.expanduser(chosen))  # noqa: PTH100, PTH111
    return _data_folder(environment, "dittybag")


def known_libraries(environment: Mapping[str, str], profile: str | None = None) -> tuple[str, ...]:
    """Return the library folders besides our own that commands show.

    They are those of Twig if the environment names them or chooses its profile.
    """
    profile = profile or environment.get("DITTYBAG_PROFILE")
    return (_twig_directory(environment),) if environment.get("TWIG_DATA_DIR") or profile == "twig" else ()


def _twig_directory(environment: Mapping[str, str]) -> str:
    """Return the folder of Twig's libraries, so that its users can switch without moving files."""
    if chosen := environment.get("TWIG_DATA_DIR"):
        return os.path.abspath(os.path.expanduser(chosen))  # noqa: PTH100, PTH111
    return os.path.join(_data_folder(environment, "twig"), "prompts")  # noqa: PTH118


def _data_folder(environment: Mapping[str, str], program: str) -> str:
    if str(sys.platform) == "darwin":
        # Not XDG_DATA_HOME: applications do not get the variables of the shell, and would use another folder.
        base = os.path.expanduser("~/Library/Application Support")  # noqa: PTH111
    else:
        base = environment.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")  # noqa: PTH111
    return os.path.join(base, program)  # noqa: PTH118


def _boolean(environment: Mapping[str, str], name: str, *, default: str = "") -> bool:
    value = environment.get(name, "").strip().lower() or default
    if value in _YES:
        return True
    if value in _NO:
        return False
    raise SettingsError(f"{name} must be one of {', '.join(_YES + _NO[1:])}, not '{value}'")
