"""JSON, TOML, YAML and other blocks of the documentation are what Dittybag, its clients and servers take.

A block that cannot be checked says why: ```nginx not-run="needs a certificate". `text` is output.
"""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from dittybag.clients.http_snippets import http_snippet
from tests.cli.cli_runner import data, dittybag
from tests.contracts.contract_replay import ServerUnderTest
from tests.stdio_server_process import ROOT, StdioServerProcess
from tests.test_documentation import make_targets
from tests.test_guides import PAGES, blocks

#: Pages whose blocks another test checks.
TESTED_ELSEWHERE: Final = {
    # tests/cli/test_several_agents.py runs the agent.
    ("docs/guides/several-agents.md", "python"),
    # tests/cli/test_json_output.py checks the envelope of every command.
    ("docs/reference/json.md", "json"),
    # tests/cli/test_macos.py reads the launch agent.
    ("docs/operate/platforms.md", "xml"),
}

Check = Callable[[str, Path], None]


def checked_blocks() -> Iterator[tuple[str, str, str]]:
    """Yield the page, the language and the code of each block that this test checks."""
    for page in PAGES:
        for info, code in blocks(page):
            if (
                info not in ("sh", "text")
                and " not-run=" not in info
                and (page, info) not in TESTED_ELSEWHERE
            ):
                yield page, info, code


# JSON


def check_json(code: str, folder: Path) -> None:
    value = msgspec.json.decode(code)
    for is_kind, check in JSON_KINDS:
        if is_kind(value):
            check(value, folder)
            return
    raise AssertionError("say in JSON_KINDS what this is, and how to check it")


def check_local_entry(value: dict[str, Any], folder: Path) -> None:
    """The entry has the form of those that `connect` writes, and its command starts a server."""
    entry = value["mcpServers"]["dittybag"]
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / ".config")}
    connected = data(dittybag(folder, "connect", "claude-desktop", "--json", variables=home))
    written = msgspec.json.decode(Path(connected["file"]).read_bytes())["mcpServers"]["dittybag"]
    assert entry.keys() == written.keys() - {"env"}
    command: str = entry["command"]
    arguments: list[str] = entry["args"]
    if command == "wsl.exe":
        assert arguments[0] == "--exec"
        command, arguments = arguments[1], arguments[2:]
    # Here, `connect` writes `python -m dittybag`, because no program `dittybag` was run.
    assert Path(command).name == "dittybag"
    options = written["args"][written["args"].index("serve") :]
    assert set(arguments) <= {*options, "default", "--read-only", "--db", "team.db"}
    if "--db" in arguments:
        dittybag(folder, "task", "add", "One", "--db", str(folder / "team.db"))
    with StdioServerProcess("dittybag", *arguments, env={"DITTYBAG_HOME": str(folder)}, cwd=folder) as server:
        assert server.handshake("2025-11-25")["serverInfo"]["name"] == "dittybag"


def check_hook(value: dict[str, Any], folder: Path) -> None:
    """The command of the hook prints what a client adds to the conversation."""
    ((hook,),) = value["hooks"].values()
    dittybag(folder, "task", "add", "One")
    program, *arguments = shlex.split(hook["command"])
    assert program == "dittybag"
    printed = msgspec.json.decode(dittybag(folder, *arguments, "-p", "default").stdout)
    assert "task:1 One" in printed["hookSpecificOutput"]["additionalContext"]


def check_http_entry(value: dict[str, Any], folder: Path) -> None:
    """The entry is what the web UI shows for VS Code, in the file format of most clients."""
    entry = value["mcpServers"]["dittybag"]
    needs_token = "headers" in entry
    written = http_snippet("vscode", entry["url"], needs_token=needs_token).text
    expected = re.sub(r"dittybag_\w+", "dittybag_...", written)
    assert entry == msgspec.json.decode(expected)["servers"]["dittybag"]


def check_prompt(value: dict[str, Any], folder: Path) -> None:
    """A tool stores it, and it can be rendered."""
    with ServerUnderTest(folder) as server:
        assert not server.call("create_prompt", **value)["isError"]
        arguments = {argument["name"]: argument.get("choices", ["x"])[0] for argument in value["arguments"]}
        prompt = {"method": "prompts/get", "params": {"name": value["name"], "arguments": arguments}}
        text = server.ask(prompt)["result"]["messages"][0]["content"]["text"]
    assert "{{" not in text


def check_skill_entry(value: dict[str, Any], folder: Path) -> None:
    """A server lists such a skill with the same members."""
    skill = folder / "libraries" / "acme" / "skills" / "pdf-forms"
    (skill / "templates").mkdir(parents=True)
    front = "".join(f"{name}: {text}\n" for name, text in value["frontmatter"].items())
    (skill / "SKILL.md").write_text(f"---\n{front}---\n\nPick a template.\n")
    (skill / "templates" / "invoice.md").write_text("# Invoice\n")
    with ServerUnderTest(folder, env={"DITTYBAG_HOME": str(folder)}) as server:
        (listed,) = server.ask({"method": "skills/list"})["result"]["skills"]
    assert _shape(listed) == _shape(value)


def _shape(value: Any) -> Any:
    """Return a value without the digests and sizes of files."""
    if isinstance(value, dict):
        return {name: _shape(member) for name, member in value.items() if name not in ("digest", "size")}
    return [_shape(item) for item in value] if isinstance(value, list) else value


JSON_KINDS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, Path], None]], ...]] = (
    (lambda value: "command" in value.get("mcpServers", {}).get("dittybag", {}), check_local_entry),
    (lambda value: "url" in value.get("mcpServers", {}).get("dittybag", {}), check_http_entry),
    (lambda value: "hooks" in value, check_hook),
    (lambda value: "content" in value and "arguments" in value, check_prompt),
    (lambda value: str(value.get("uri")).startswith("skill://"), check_skill_entry),
)


# Other languages


def check_library(code: str, folder: Path) -> None:
    """The file lists the prompts of a library that has no problems but missing variables."""
    keys = tomllib.loads(code)["prompts"]
    (folder / "library" / "prompts").mkdir(parents=True)
    (folder / "library" / "twig.toml").write_text(code)
    for key, prompt in keys.items():
        variables = " ".join(f"{{{{ {argument['name']} }}}}" for argument in prompt["arguments"])
        (folder / "library" / "prompts" / f"{key}.md").write_text(variables)
    found = data(dittybag(folder / "home", "library", "check", str(folder / "library"), "--json"))
    assert found["errors"] == found["warnings"] == 0, found


def check_markdown(code: str, folder: Path) -> None:
    """The file is a skill, or a prompt of an export."""
    if "\ndescription: Fills in" in code:
        skill = folder / "library" / "pdf-forms"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(code)
        found = data(dittybag(folder / "home", "library", "check", str(folder / "library"), "--json"))
        assert found["errors"] == found["warnings"] == 0, found
        assert found["libraries"][0]["prompts"] == 1
    else:
        dittybag(folder / "home", "project", "create", "website")
        dittybag(folder / "home", "export", str(folder / "export"))
        prompt = folder / "export" / "projects" / "website" / "prompts" / "code-review.md"
        prompt.parent.mkdir(parents=True, exist_ok=True)
        prompt.write_text(code)
        imported = data(dittybag(folder / "home", "import", str(folder / "export"), "--json"))
        assert imported["imported"]["prompts"] == 1, imported


def check_ini(code: str, folder: Path) -> None:
    """Settings of Dittybag exist; files of other programs have the syntax."""
    if code.startswith("DITTYBAG_"):
        settings = (ROOT / "docs" / "reference" / "settings.md").read_text()
        for line in code.splitlines():
            assert f"`{line.partition('=')[0]}`" in settings
        return
    parser = configparser.ConfigParser()
    parser.read_string(code)
    assert parser["pgbouncer"]["pool_mode"] == "transaction"


def check_workflow(code: str, folder: Path) -> None:
    """Every command of Dittybag in a workflow has a help page."""
    commands = re.findall(r"run: dittybag (.*)", code)
    assert commands
    for command in commands:
        dittybag(folder, *command.split()[:2], "--help")


def check_console(code: str, folder: Path) -> None:
    """What is typed after the prompt are targets of make."""
    typed = make_targets(re.sub(r"^\$ ", "", code, flags=re.MULTILINE))
    assert typed
    assert set(typed) <= set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


CHECKS: Final[dict[str, Check]] = {
    "json": check_json,
    "toml": check_library,
    "markdown": check_markdown,
    "ini": check_ini,
    "yaml": check_workflow,
    "console": check_console,
}


@pytest.mark.parametrize(("page", "language", "code"), list(checked_blocks()), ids=lambda value: value[:40])
def test_the_block_is_right(page: str, language: str, code: str, tmp_path: Path) -> None:
    CHECKS[language](code, tmp_path)


def test_the_envelopes_of_json_output_are_real(tmp_path: Path) -> None:
    success, failure = [code for info, code in blocks("docs/reference/json.md") if info == "json"][:2]
    created = dittybag(tmp_path, "project", "create", "code-review", "--json")
    refused = dittybag(tmp_path, "prompt", "show", "x", "--json", status=3)
    assert (created.stdout, refused.stderr) == (success, failure)
