"""The files in `deploy/` and the guide are consistent with each other and with Dittybag."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a separate package
from click.testing import CliRunner

from dittybag.cli import commands
from dittybag.cli.serve import parse_options
from dittybag.config import settings
from tests.fleet.deploy_validators import DEPLOY, VALIDATORS
from tests.fleet.server_fleet import Fleet
from tests.stdio_server_process import ROOT

GUIDE: Final = ROOT / "docs" / "guides" / "running.md"
TEXTS: Final = [GUIDE, *sorted(path for path in DEPLOY.iterdir() if path.is_file())]

#: A made-up password.
URL: Final = "postgresql://dittybag:secret@db.example.org/dittybag"


@pytest.fixture
def compose() -> dict[str, Any]:
    text = (DEPLOY / "compose.yaml").read_text()
    # Substitute the variables as Compose does if none is set.
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)
    assert "${" not in text
    loaded: dict[str, Any] = yaml.safe_load(text)
    return loaded


def dockerfile(instruction: str) -> list[str]:
    """The arguments of every use of an instruction."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    return re.findall(rf"^{instruction} (.*)$", text, re.MULTILINE)


def unit_settings() -> list[tuple[str, str]]:
    lines = (DEPLOY / "dittybag.service").read_text().splitlines()
    found = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return [(name, value) for name, _, value in found]


def settings_of(arguments: list[str], environment: dict[str, str]) -> Any:
    """The settings of a server with these arguments and environment variables."""
    assert arguments[0] == "serve"
    flags: Any = parse_options(arguments[1:])
    return settings({"DITTYBAG_HOME": "/var/lib/dittybag", **environment}, **flags)


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_mentioned_setting_exists(text: Path) -> None:
    known = (ROOT / "docs" / "reference" / "settings.md").read_text()
    for name in set(re.findall(r"DITTYBAG_[A-Z_]+", text.read_text())):
        assert f"`{name}`" in known, name


def test_the_unit_starts_a_server_with_token_authentication() -> None:
    (ini,) = re.findall(r"^```ini\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    environment = dict(line.split("=", 1) for line in ini.splitlines())
    (command,) = [value for name, value in unit_settings() if name == "ExecStart"]
    program, *arguments = shlex.split(command)
    started = settings_of(arguments, environment)
    assert program == "/opt/dittybag/bin/dittybag"
    assert (started.auth, started.access_log) == ("tokens", True)
    assert (started.http, started.database) == (("0.0.0.0", 8765), URL)
    assert started.allowed_hosts == ("dittybag.example.org",)


@pytest.mark.parametrize("name", VALIDATORS)
def test_the_validator_accepts_the_file(name: str, tmp_path: Path) -> None:
    VALIDATORS[name]((DEPLOY / name).read_text(), tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "broken", "message"),
    [
        ("Dockerfile", "WORKDIR /data", "WORKDIR data", "DL3000"),
        ("Dockerfile", "USER 10001:10001", "USER root", "DL3002"),
        ("compose.yaml", "stop_grace_period", "stop_grace", "stop_grace"),
        ("nginx.conf", "proxy_buffering off", "proxy_bufering off", "proxy_bufering"),
        ("dittybag.service", "RestartSec=1s", "RestartSecs=1s", "RestartSecs"),
        ("dittybag.service", "CapabilityBoundingSet=\n", "\n", ""),
    ],
)
def test_the_validator_refuses_a_broken_copy(
    name: str, text: str, broken: str, message: str, tmp_path: Path
) -> None:
    whole = (DEPLOY / name).read_text()
    assert text in whole
    with pytest.raises(subprocess.CalledProcessError) as refused:
        VALIDATORS[name](whole.replace(text, broken), tmp_path)
    assert message in refused.value.stdout


def test_the_image_serves_with_tokens_as_an_unprivileged_user(compose: dict[str, Any]) -> None:
    (entry,) = dockerfile("ENTRYPOINT")
    (command,) = dockerfile("CMD")
    assert json.loads(entry) == ["dittybag"]
    started = settings_of(json.loads(command), {"DITTYBAG_DATABASE_URL": URL})
    assert (started.auth, started.http) == ("tokens", ("0.0.0.0", 8765))
    assert dockerfile("USER") == ["10001:10001"]
    (extras,) = re.findall(r"whl\)\[(.*)\]\"", (DEPLOY / "Dockerfile").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    for extra in extras.split(","):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE)
    assert compose["x-server"]["command"] == json.loads(command)


def test_the_image_contains_only_existing_and_listed_files() -> None:
    *copies, _ = dockerfile("COPY")
    sources = {source for line in copies for source in line.split()[:-1]}
    assert all((ROOT / source).exists() for source in sources)
    first, *rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] in "*!"]
    assert first == "*"
    assert {line.removeprefix("!") for line in rules if line.startswith("!")} == sources


def test_the_image_is_healthy_while_the_server_answers(fleet: Fleet) -> None:
    (line,) = re.findall(r"CMD (\[.*\])", dockerfile("HEALTHCHECK")[0])
    program, *arguments = json.loads(line)
    assert program == "python"
    statuses = []
    for port in (fleet.servers[0].address[1], 9):
        here = [argument.replace("8765", str(port)) for argument in arguments]
        done = subprocess.run([sys.executable, *here], capture_output=True, timeout=10, check=False)
        statuses.append(done.returncode)
    assert statuses == [0, 1]


def test_nginx_and_compose_name_the_same_servers(compose: dict[str, Any]) -> None:
    named = re.findall(r"^ *server (dittybag-\d+):8765 ", (DEPLOY / "nginx.conf").read_text(), re.MULTILINE)
    services = compose["services"]
    assert named == [name for name in services if name.startswith("dittybag-")]
    assert len(named) == 2
    addresses = {name: services[name]["networks"]["inside"]["ipv4_address"] for name in named}
    assert services["nginx"]["extra_hosts"] == [f"{name}:{address}" for name, address in addresses.items()]
    (mounted,) = services["nginx"]["volumes"]
    assert mounted == "./nginx.conf:/etc/nginx/conf.d/default.conf:ro"
    for name in named:
        environment = dict(services[name]["environment"])
        assert environment.pop("DITTYBAG_DATABASE_URL_FILE") == "/run/secrets/database_url"
        assert services[name]["secrets"] == ["database_url"]
        started = settings_of(services[name]["command"], environment)
        assert started.auth == "tokens"
        assert started.allowed_hosts == ("localhost",)
    database = services["database"]
    assert database["environment"] == {"POSTGRES_PASSWORD_FILE": "/run/secrets/database_password"}
    assert "./database.sql:/docker-entrypoint-initdb.d/database.sql:ro" in database["volumes"]
    assert (DEPLOY / compose["x-server"]["build"]["context"] / "deploy" / "Dockerfile").is_file()


def test_every_container_is_read_only_and_has_few_capabilities(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
    for name in ("dittybag-1", "dittybag-2"):
        assert "cap_add" not in compose["services"][name]
        assert compose["services"][name]["tmpfs"] == ["/tmp"]


def guide_commands() -> list[list[str]]:
    """The arguments of every `dittybag` command in the guide."""
    blocks = re.findall(r"^```sh[^\n]*\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    lines = [shlex.split(line) for block in blocks for line in block.splitlines()]
    # In a container, the service name is in place of the program.
    outside = [line[1:] for line in lines if line[0] == "dittybag"]
    inside = [line[line.index("dittybag-1") + 1 :] for line in lines if "dittybag-1" in line]
    return [*outside, *inside]


def test_every_command_in_the_guide_exists() -> None:
    found = guide_commands()
    assert sorted({line[0] for line in found}) == ["copy", "token", "user"]
    for line in found:
        words = [word for word in line[:2] if not word.startswith("-")]
        result = CliRunner().invoke(commands.dittybag, [*words, "--help"])
        assert result.exit_code == 0, result.output
        for option in (word for word in line if word.startswith("--")):
            assert re.search(rf"^  {option} ", result.output, re.MULTILINE), (line, option)
