"""TOML files of all layouts: adding and removing an entry preserves them byte for byte."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dittybag.clients.client_errors import ClientFileRefused
from tests.clients.client_file_fixture import LAUNCH, ClientFileFixture
from tests.repetitions import repetitions

ENTRY = LAUNCH.entry(ClientFileFixture(Path("/"), "codex").target.client)

LAYOUTS = {
    "empty": "",
    "blank": "\n \n",
    "only comments": "# my settings",
    "one key": 'model = "o3"\n',
    "no newline at the end": 'model = "o3"',
    "blank lines at the end": 'model = "o3"\n\n\n',
    "windows": 'model = "o3"\r\n\r\n[mcp_servers.a]\r\ncommand = "a"\r\n',
    "windows, no newline": '[mcp_servers.a]\r\ncommand = "a" # x',
    "mark": '\ufeffmodel = "o3"\n',
    "others": '[mcp_servers.a]\ncommand = "a"\n\n[projects."/x"]\ntrust_level = "trusted"\n',
    "comments": '# top\n[mcp_servers.a] # a\ncommand = "a" # b\n# end\n',
    "indented": '  [mcp_servers]\n\t[mcp_servers.a]\n\t  command = "a"\n',
    "dotted": 'mcp_servers.a.command = "a"\n',
    "inside the table": '[mcp_servers]\na = { command = "a" }\nb.command = "b"\n',
    "odd spaces": '[ mcp_servers . "a" ]\ncommand="a"\n"quoted key" = 1\n',
    "looks like it": 'x = """\n[mcp_servers.dittybag]\na = 1\n"""\n'
    "y = '''\n[mcp_servers.dittybag]'''\n",
    "quotes at the end": 'x = """a"""""\ny = \'\'\'b\'\'\'\'\'\nz = "\\"#"\n',
    "lists": "x = [\n  [1, 2], # [mcp_servers.dittybag]\n  [\n  ],\n]\n",
    "array of tables": "[[hooks]]\na = 1\n[[hooks]]\na = 2\n[hooks.deep]\nb = nan\n",
    "dates": "a = 1979-05-27T07:32:00-08:00\nb = 07:32:00\nc = inf\nd = 0xFF\n",
    "similar names": '[mcp_servers.dittybag2]\na = "a"\n[dittybag]\nb = 1\n[x.mcp_servers.dittybag]\nc = 1\n',
}


@pytest.fixture
def client_file(tmp_path: Path) -> ClientFileFixture:
    return ClientFileFixture(tmp_path, "codex")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_entry_is_added_and_removed(client_file: ClientFileFixture, layout: str) -> None:
    before = client_file.write(LAYOUTS[layout])
    client_file.check_round_trip(before)
    assert client_file.remove().state == "absent"
    assert client_file.read() == before
    client_file.connect()
    assert client_file.entry() == ENTRY
    assert client_file.read().startswith(before)
    client_file.delete_copies()
    assert client_file.remove().state == "removed"
    assert client_file.read().rstrip() == before.rstrip()


def test_the_entry_is_a_separate_table(client_file: ClientFileFixture) -> None:
    client_file.write('model = "o3"\r\n')
    client_file.connect()
    assert client_file.text() == (
        'model = "o3"\r\n\r\n[mcp_servers.dittybag]\r\ncommand = "/opt/dittybag/bin/dittybag"\r\n'
        'args = ["serve"]\r\nenv = { DITTYBAG_HOME = "/srv/bag" }\r\n'
    )


OWN_TABLES = {
    "a table": '[mcp_servers.dittybag]\ncommand = "/old/dittybag" # old\nargs = [\n  "serve",\n]\n',
    "a table with a subtable": (
        '[mcp_servers.dittybag]\ncommand = "dittybag"\nargs = ["serve"]\n\n'
        '[mcp_servers.dittybag.env]\nA = "1"\n# end\n[mcp_servers.b]\ncommand = "b"\n'
    ),
    "a table apart from its subtable": (
        '[mcp_servers.dittybag.env]\nA = "1"\n[mcp_servers.b]\na = "b"\n[mcp_servers.dittybag]\n'
        'command = "dittybag"\nargs = ["serve"]'
    ),
    "quoted": '[ "mcp_servers" . \'dittybag\' ]\ncommand = "dittybag"\nargs = ["serve"]\n',
}


@pytest.mark.parametrize("own", OWN_TABLES)
def test_an_entry_that_the_user_wrote_is_updated_and_removed(
    client_file: ClientFileFixture, own: str
) -> None:
    others = tomllib.loads(client_file.write(OWN_TABLES[own]).decode())
    others["mcp_servers"].pop("dittybag")
    assert client_file.connect().state == "updated"
    assert client_file.entry()["command"] == ENTRY["command"]
    assert client_file.remove().state == "removed"
    now = tomllib.loads(client_file.text())
    assert {"mcp_servers": {}} | now == others


@pytest.mark.parametrize(
    "own",
    [
        'a = 1\n[mcp_servers]\ndittybag = { command = "dittybag", args = ["serve"] } # here\nb = {}\n',
        '[mcp_servers]\ndittybag.command = "dittybag"\ndittybag.args = ["serve"]\n[z]\n',
        'mcp_servers.dittybag = { command = "dittybag", args = ["serve"] }\nmcp_servers.b = {}\n',
    ],
)
def test_an_entry_without_a_header_is_not_changed(client_file: ClientFileFixture, own: str) -> None:
    before = client_file.write(own)
    for attempt in (client_file.connect, client_file.remove):
        with pytest.raises(ClientFileRefused, match="has no header of its own; change it manually"):
            attempt()
        assert client_file.read() == before


def test_additions_of_the_user_to_an_entry_are_kept(client_file: ClientFileFixture) -> None:
    client_file.write(
        '[mcp_servers.dittybag]\ncommand = "/old/dittybag"\nargs = ["serve"]\nstartup_timeout_sec = 1.5\n'
        'enabled = true\nsince = 2026-01-01\nlist = [1, ["\\u007f\\\\"]]\n'
        '[mcp_servers.dittybag."the tools"]\nx.y = {}\n'
    )
    client_file.connect()
    entry = client_file.entry()
    assert {key: entry[key] for key in ENTRY} == ENTRY
    assert entry["startup_timeout_sec"] == 1.5
    assert entry["enabled"] is True
    assert entry["since"].isoformat() == "2026-01-01"
    assert entry["list"] == [1, ["\x7f\\"]]
    assert entry["the tools"] == {"x": {"y": {}}}


@pytest.mark.parametrize(
    ("before", "appended", "after"),
    [
        (
            'model = "o3"\n',
            '\n[projects."/x"]\ntrust_level = "trusted"\n',
            'model = "o3"\n\n[projects."/x"]\ntrust_level = "trusted"\n',
        ),
        ('model = "o3"', "[z]\na = 1\n", 'model = "o3"\n\n[z]\na = 1\n'),
        ("", "[mcp_servers.dittybag.tools]\nx = 1\n[z]\n", "[z]\n"),
    ],
)
def test_later_changes_by_others_are_kept(
    client_file: ClientFileFixture, before: str, appended: str, after: str
) -> None:
    client_file.write(before)
    client_file.connect()
    client_file.write(client_file.text() + appended)
    assert client_file.remove().state == "removed"
    assert client_file.text() == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = ", "not valid TOML"),
        ("a = 1\na = 2\n", "not valid TOML: Cannot overwrite a value"),
        ("[a\n", "at the end of a table declaration (at line 1, column 3)"),
        ('a = 1\nb = """\n', "not valid TOML: Unterminated string"),
        ("= 1\n", "Invalid statement (at line 1, column 1)"),
        ('{"mcpServers": {}}', "Invalid statement (at line 1, column 1)"),
        ("mcp_servers = 1\n", "'mcp_servers' is not a table"),
        ("[[mcp_servers]]\na = 1\n", "'mcp_servers' is not a table"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a." * 20_000 + "a = 1\n", "a key has too many parts, line 1"),
        ("a = 1\x00\n", "not valid TOML"),
        ('"\\x" = 1\n', "not valid TOML"),
    ],
    ids=range(12),
)
def test_an_invalid_file_is_refused_and_not_changed(
    client_file: ClientFileFixture, text: str, problem: str
) -> None:
    before = client_file.write(text)
    for attempt in (client_file.connect, client_file.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert problem in refused.value.problem
        assert client_file.read() == before


@pytest.mark.parametrize("inside", ["", 'a = { command = "a" }'])
def test_servers_in_an_inline_table_are_not_changed(client_file: ClientFileFixture, inside: str) -> None:
    before = client_file.write(f"mcp_servers = {{ {inside} }}\n")
    with pytest.raises(ClientFileRefused, match="is an inline table"):
        client_file.connect()
    assert client_file.read() == before


MIXED = '[mcp_servers.a]\ncommand = "a"\n# hooks\n[[hooks]]\na = 1\n# b\n[mcp_servers.b]\ncommand = "b"\n'


def test_tables_around_an_array_of_tables_keep_their_order(client_file: ClientFileFixture) -> None:
    before = client_file.write(MIXED)
    client_file.check_round_trip(before)
    client_file.connect()
    client_file.delete_copies()
    client_file.write(client_file.text() + "# end\n[z]\n")
    assert client_file.remove().state == "removed"
    assert client_file.text() == MIXED + "\n# end\n[z]\n"


def test_comments_after_a_removed_entry_are_kept(client_file: ClientFileFixture) -> None:
    own = '[mcp_servers.dittybag]\ncommand = "dittybag"\nargs = ["serve"]\n'
    client_file.write(f"# first\n{own}\n# about z\n\n[z]\n")
    assert client_file.remove().state == "removed"
    assert client_file.text() == "# first\n\n# about z\n\n[z]\n"


STATEMENTS = st.sampled_from(
    [
        "# comment [mcp_servers.dittybag]",
        "",
        "   ",
        'k{} = "v" # c',
        "k{} = '''\n[mcp_servers.dittybag]\n'''",
        'k{} = """\\\n  "" [x] """',
        "k{} = [ 1, # ]\n 2,\n]",
        'k{} = {{ a = "}}" }}',
        'k{}."a.b" . c = 1',
        "[t{}]",
        "  [ t{} . x ] # [",
        "[[l{}]]",
        '[mcp_servers.s{}]\ncommand = "x"',
        '[mcp_servers.s{}.env]\nA = "#"',
        "[x{}.mcp_servers.dittybag]",
    ]
)


@st.composite
def config_texts(draw: st.DrawFn) -> str:
    """A valid TOML file of any layout."""
    lines = [line.format(number) for number, line in enumerate(draw(st.lists(STATEMENTS, max_size=8)))]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return ("\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end"]))).replace("\n", newline)


@settings(max_examples=repetitions(75, 2000), deadline=None)
@given(config_texts())
def test_any_layout_is_restored(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client_file = ClientFileFixture(Path(folder), "codex")
        client_file.check_round_trip(client_file.write(text))
