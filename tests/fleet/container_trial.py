"""Builds the container image and runs it as the guide says, for one person and for a team.

It needs Docker with Compose, and gives its own names to everything that it creates and removes.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.fleet.server_fleet import free_port, wait_until
from tests.stdio_server_process import ROOT

NAME: Final = "dittybag-trial"
GUIDE: Final = ROOT / "docs" / "operate" / "containers.md"
_DEPLOY: Final = ROOT / "deploy"
_SECONDS: Final = 900
#: The default of `docker stop`, after which it kills.
_GRACE_SECONDS: Final = 10
_PROMPT: Final = {"name": "greeting", "content": "Hello {{ name }}", "arguments": [{"name": "name"}]}
_READ_STATUS: Final = """
import json, pathlib
lines = pathlib.Path("/proc/1/status").read_text().splitlines()
print(json.dumps(dict(line.split(":\\t", 1) for line in lines)))
"""
_WRITE: Final = """
import pathlib
def can_write(folder):
    try:
        (pathlib.Path(folder) / "probe").write_text("")
    except OSError:
        return False
    (pathlib.Path(folder) / "probe").unlink()
    return True
folders = ("/", "/opt/dittybag", "/usr", "/etc", "/var/tmp", "/run", "/tmp", "/data")
print([folder for folder in folders if can_write(folder)])
"""


class Engine:
    """The `docker` command."""

    def run(self, *arguments: str | Path, stdin: str = "", cwd: Path = ROOT) -> str:
        """Run a `docker` command and return its standard output, which ends in no newline."""
        done = subprocess.run(
            ["docker", *map(str, arguments)],
            cwd=cwd,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"docker {shlex.join(map(str, arguments))}\n{done.stdout}{done.stderr}"
        return done.stdout.strip()

    def inspect(self, container: str, form: str) -> str:
        return self.run("inspect", "--format", form, container)

    def wait_until_healthy(self, container: str) -> float:
        """Wait until the engine has seen the health check succeed. Returns the elapsed seconds."""

        def is_healthy() -> bool:
            return self.inspect(container, "{{.State.Health.Status}}") == "healthy"

        return wait_until(is_healthy, f"{container} is healthy", 90)


class Client:
    """An MCP client over HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def status(self) -> int:
        """Return the status of a request, 0 if nobody answers."""
        try:
            self.call("tools/list", {})
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0
        return 200

    def call(self, method: str, params: dict[str, Any]) -> Any:
        """Return the result of a method."""
        frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, frame, self._headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)["result"]

    def save_prompt(self) -> None:
        result = self.call("tools/call", {"name": "create_prompt", "arguments": _PROMPT})
        assert not result.get("isError"), result

    def rendered_prompt(self, name: str = "greeting", **arguments: str) -> str:
        """Return a prompt with its arguments."""
        result = self.call("prompts/get", {"name": name, "arguments": arguments or {"name": "Bo"}})
        text: str = result["messages"][0]["content"]["text"]
        return text

    def prompts(self) -> set[str]:
        """Return the names of all prompts."""
        return {prompt["name"] for prompt in self.call("prompts/list", {})["prompts"]}


def build(engine: Engine) -> None:
    engine.run("build", "--no-cache", "--file", "deploy/Dockerfile", "--tag", NAME, ".")
    layers = engine.run("history", "--format", "{{.Size}}  {{.CreatedBy}}", NAME).splitlines()
    report("the image was built; its layers that are not empty, newest first:")
    for line in layers:
        if not line.startswith("0B"):
            print(f"    {line[:100]}")


def check_confinement(engine: Engine, container: str) -> None:
    """The server is the user 10001 without capabilities, and can write to two folders."""
    status = dict(
        eval(engine.run("exec", container, "python", "-c", _READ_STATUS))
    )  # literals of our own code
    facts = (
        status["Uid"].split()[0],
        int(status["CapEff"], 16),
        int(status["CapBnd"], 16),
        status["NoNewPrivs"],
    )
    assert facts == ("10001", 0, 0, "1"), facts
    writable = engine.run("exec", container, "python", "-c", _WRITE)
    assert writable == "['/tmp', '/data']", writable
    # The engine lists the places where it mounts secrets.
    changed = [line for line in engine.run("diff", container).splitlines() if " /run" not in line]
    assert not changed, changed
    report(f"{container}: user 10001, no capability, writes to /tmp and /data only")


def one_person(engine: Engine) -> None:
    volume = ["--volume", f"{NAME}:/data"]
    (line,) = re.findall(r"(--read-only .*) dittybag$", GUIDE.read_text(), re.MULTILINE)
    limits = ["--memory", "1g", "--pids-limit", "256"]
    engine.run("run", "--rm", *volume, NAME, "user", "add", "alice")
    token = engine.run("run", "--rm", *volume, NAME, "token", "create", "--user", "alice", "--scope", "write")
    port = free_port()
    publish = ["--publish", f"127.0.0.1:{port}:8765"]
    engine.run("run", "--detach", "--name", NAME, *volume, *publish, *limits, *shlex.split(line), NAME)
    report(f"one person: healthy after {engine.wait_until_healthy(NAME):.1f} s")
    check_confinement(engine, NAME)
    client = Client(f"http://127.0.0.1:{port}/mcp", token)
    assert Client(client.url, "wrong").status() == 401
    client.save_prompt()
    assert client.rendered_prompt() == "Hello Bo"
    engine.run("exec", NAME, "dittybag", "library", "new", "team")
    wait_until(lambda: "team:explain" in client.prompts(), "the prompts of the library are listed")
    # A child process with limits of its own renders it.
    text = client.rendered_prompt("team:explain", topic="knots", audience="sailors")
    assert "knots" in text, text
    assert "{{" not in text, text
    report(
        "one person: an MCP client saved a prompt, and rendered it and one of a library; a wrong token failed"
    )
    usage = engine.run("stats", "--no-stream", "--format", "{{.MemUsage}}, {{.PIDs}} threads", NAME)
    report(f"one person: memory {usage}")
    stop(engine, NAME)
    engine.run("start", NAME)
    engine.wait_until_healthy(NAME)
    assert client.rendered_prompt() == "Hello Bo"
    engine.run("exec", NAME, "dittybag", "backup", "create", "/data/before.db")
    with tempfile.TemporaryDirectory() as folder:
        engine.run("cp", f"{NAME}:/data/before.db", folder)
        assert (Path(folder) / "before.db").stat().st_size > 10_000
    report("one person: the prompt is there after a restart, and in a backup that was copied out")
    requests = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}},
        {"id": 2, "method": "prompts/list"},
    ]
    frames = "".join(json.dumps({"jsonrpc": "2.0", **request}) + "\n" for request in requests)
    command = ["run", "--interactive", "--rm", "--no-healthcheck", *volume, NAME, "serve"]
    assert "greeting" in engine.run(*command, stdin=frames)
    report("one person: a client on standard input and output saw the prompt while the server was running")


def stop(engine: Engine, container: str) -> None:
    """The server ends by itself within the time that the engine gives it."""
    started = time.monotonic()
    engine.run("stop", container)
    seconds = time.monotonic() - started
    status = engine.inspect(container, "{{.State.ExitCode}} {{.State.OOMKilled}}")
    assert seconds < _GRACE_SECONDS, seconds
    assert status == "0 false", status
    report(f"{container}: stopped in {seconds:.1f} s with exit status 0")


def team(engine: Engine, folder: Path) -> None:
    deploy, port = folder / "deploy", free_port()
    secrets = deploy / "secrets"
    secrets.mkdir(mode=0o700, parents=True)
    for name in ("nginx.conf", "database.sql"):
        (deploy / name).write_text((_DEPLOY / name).read_text())
    text = (_DEPLOY / "compose.yaml").read_text()
    for old, new in (
        ("image: dittybag\n", f"image: {NAME}\n"),
        ("127.0.0.1:8080:80", f"127.0.0.1:{port}:80"),
    ):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (deploy / "compose.yaml").write_text(text)
    for name, secret in (("password", "made-up"), ("url", "postgresql://dittybag:made-up@database/dittybag")):
        (secrets / f"database_{name}").write_text(f"{secret}\n")
        (secrets / f"database_{name}").chmod(0o644)

    def compose(*arguments: str) -> str:
        return engine.run("compose", "--project-name", NAME, *arguments, cwd=deploy)

    try:
        started = time.monotonic()
        compose("up", "--no-build", "--detach", "--wait", "--wait-timeout", "120")
        report(f"a team: all services run after {time.monotonic() - started:.1f} s")
        use_team(engine, compose, f"http://localhost:{port}/mcp")
    except AssertionError:
        print(compose("logs", "--tail", "50"), file=sys.stderr)
        raise
    finally:
        compose("down", "--volumes", "--timeout", "15")


def use_team(engine: Engine, compose: Callable[..., str], url: str) -> None:
    for container in (f"{NAME}-dittybag-1-1", f"{NAME}-dittybag-2-1"):
        engine.wait_until_healthy(container)
        check_confinement(engine, container)
    command = ["exec", "--no-TTY", "dittybag-1", "dittybag"]
    compose(*command, "user", "add", "alice")
    client = Client(url, compose(*command, "token", "create", "--user", "alice", "--scope", "write"))
    client.save_prompt()
    assert client.rendered_prompt() == "Hello Bo"
    query = [
        "exec",
        f"{NAME}-database-1",
        "psql",
        "--username",
        "postgres",
        "--csv",
        "--tuples-only",
        "--command",
    ]
    roles = "SELECT rolname, rolsuper OR rolbypassrls, rolpassword IS NULL FROM pg_authid WHERE rolcanlogin"
    assert engine.run(*query, f"{roles} ORDER BY 1").splitlines() == ["dittybag,f,f", "postgres,t,t"]
    log = compose("logs")
    assert "row-level security" not in log, log
    assert "FATAL" not in log, log
    report("a team: an MCP client saved and rendered a prompt through nginx; row-level security is in force")
    stop(engine, f"{NAME}-dittybag-1-1")
    assert [client.rendered_prompt() for _ in range(4)] == ["Hello Bo"] * 4
    compose("start", "dittybag-1")
    report("a team: it answered while one server was stopped")
    dump = compose("exec", "--no-TTY", "database", *_DUMP)
    assert "Hello {{ name }}" in dump
    report("a team: pg_dump as in the guide has the prompt")
    compose("restart")
    wait_until(lambda: client.status() == 200, "the team answers after a restart", 60)
    assert client.rendered_prompt() == "Hello Bo"
    for service in ("database", "nginx"):
        capabilities = compose(
            "exec", "--no-TTY", service, "grep", "-E", "^(Uid|CapEff|CapBnd)", "/proc/1/status"
        )
        report(f"a team: {service} after a restart: {' '.join(capabilities.split())}")


#: The command of the guide, in plain text.
_DUMP: Final = ("pg_dump", "--username", "dittybag", "--enable-row-security", "--format", "plain", "dittybag")


def report(line: str) -> None:
    print(f"ok  {line}", flush=True)


@contextmanager
def removed_at_the_end(engine: Engine) -> Iterator[None]:
    try:
        yield
    finally:
        for command in (
            ["rm", "--force", NAME],
            ["volume", "rm", "--force", NAME],
            ["image", "rm", "--force", NAME],
        ):
            engine.run(*command)


def main(*arguments: str) -> int:
    """Run the trial. Returns the exit status."""
    if arguments != ("--run",):
        print("usage: make containers ARGS=--run", file=sys.stderr)
        return 2
    engine = Engine()
    print(engine.run("version", "--format", "Docker {{.Server.Version}}"), flush=True)
    with removed_at_the_end(engine), tempfile.TemporaryDirectory() as folder:
        build(engine)
        one_person(engine)
        team(engine, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
