"""TOML files of all layouts: Dittybag gets in, and out again without a trace."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dittybag.clients.client_errors import ClientFileRefused
from dittybag.clients.toml_format import TomlFormat
from tests.clients.machines import LAUNCH, OTHER, Place

ENTRY = LAUNCH.entry(Place(Path("/"), "codex").target.client)

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
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "codex")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_put_in_is_taken_out_to_the_byte(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout])
    place.goes_there_and_back(before)
    assert place.remove().state == "absent"
    assert place.read() == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_record_everything_else_stays_in_its_place(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout]).decode()
    place.connect()
    place.forget()
    assert place.remove().state == "removed"
    assert place.text().rstrip() == before.rstrip()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_was_there_stays_in_front(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout])
    place.connect()
    assert place.read().startswith(before)
    assert place.entry() == ENTRY


def test_the_entry_is_a_table_of_its_own(place: Place) -> None:
    place.write('model = "o3"\r\n')
    place.connect()
    assert place.text() == (
        'model = "o3"\r\n\r\n[mcp_servers.dittybag]\r\ncommand = "/opt/dittybag/bin/dittybag"\r\n'
        'args = ["serve"]\r\nenv = { DITTYBAG_HOME = "/srv/bag" }\r\n'
    )


PREVIOUS = {
    "a table": '[mcp_servers.dittybag]\ncommand = "/old/dittybag" # old\nargs = [\n  "serve",\n]\n',
    "a table with its own": (
        '[mcp_servers.dittybag]\ncommand = "x"\n\n[mcp_servers.dittybag.env]\nA = "1"\n# end\n'
        '[mcp_servers.b]\ncommand = "b"\n'
    ),
    "a table apart from its own": (
        '[mcp_servers.dittybag.env]\nA = "1"\n[mcp_servers.b]\na = "b"\n[mcp_servers.dittybag]\ncommand = "x"'
    ),
    "quoted": '[ "mcp_servers" . \'dittybag\' ]\ncommand = "x"\n',
    "a line": 'a = 1\n[mcp_servers]\ndittybag = { command = "x" } # here\nb = { command = "b" }\n',
    "dotted lines": '[mcp_servers]\ndittybag.command = "x"\nb.command = "b"\ndittybag.args = []\n[z]\n',
    "dotted from the top": 'mcp_servers.dittybag = { command = "x" }\nmcp_servers.b = {}\n',
    "no table at all": '[mcp_servers]\ndittybag = "no"\n',
}


@pytest.mark.parametrize("previous", PREVIOUS)
def test_an_entry_that_was_there_before_comes_back(place: Place, previous: str) -> None:
    before = place.write(PREVIOUS[previous])
    others = tomllib.loads(before.decode())
    outcome = place.connect()
    assert (outcome.state, outcome.has_previous) == ("updated", True)
    assert place.entry()["command"] == ENTRY["command"]
    now = tomllib.loads(place.text())
    others["mcp_servers"].pop("dittybag")
    now["mcp_servers"].pop("dittybag")
    assert now == others
    place.connect(OTHER)
    assert place.remove().has_previous
    assert place.read() == before


def test_what_its_owner_added_to_an_entry_stays_in_it(place: Place) -> None:
    place.write(
        '[mcp_servers.dittybag]\ncommand = "/old/dittybag"\nargs = ["serve"]\nstartup_timeout_sec = 1.5\n'
        'enabled = true\nsince = 2026-01-01\nlist = [1, ["\\u007f\\\\"]]\n'
        '[mcp_servers.dittybag."the tools"]\nx.y = {}\n'
    )
    place.connect()
    entry = place.entry()
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
def test_what_others_changed_meanwhile_stays(place: Place, before: str, appended: str, after: str) -> None:
    place.write(before)
    place.connect()
    place.write(place.text() + appended)
    assert place.remove().state == "removed"
    assert place.text() == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = ", "not valid TOML"),
        ("a = 1\na = 2\n", "not valid TOML: Cannot overwrite a value"),
        ("[a\n", "unexpected character, line 1"),
        ('a = 1\nb = """\n', "unexpected character, line 2"),
        ("= 1\n", "unexpected character, line 1"),
        ('{"mcpServers": {}}', "unexpected character, line 1"),
        ("mcp_servers = 1\n", "'mcp_servers' is not a table"),
        ("[[mcp_servers]]\na = 1\n", "'mcp_servers' is not a table"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a." * 20_000 + "a = 1\n", "a key has too many parts, line 1"),
        ("a = 1\x00\n", "not valid TOML"),
        ('"\\x" = 1\n', "not valid TOML"),
    ],
    ids=range(12),
)
def test_what_is_not_understood_is_refused_and_left_as_it_is(place: Place, text: str, problem: str) -> None:
    before = place.write(text)
    for attempt in (place.connect, place.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert problem in refused.value.problem
        assert place.read() == before


@pytest.mark.parametrize("inside", ["", 'dittybag = { command = "x" }', 'a = { command = "a" }'])
def test_servers_on_one_line_are_left_alone(place: Place, inside: str) -> None:
    before = place.write(f"mcp_servers = {{ {inside} }}\n")
    with pytest.raises(ClientFileRefused, match="is an inline table"):
        place.connect()
    assert place.read() == before


@pytest.mark.parametrize(
    "after",
    [
        'a = 2\n[k.b]\n[k.dittybag]\ncommand = "x"\n',
        'a = 1\n[k.dittybag]\ncommand = "x"\n',
        'a = 1\n[k.b]\n[k.dittybag]\ncommand = "y"\n',
        "a = 1\n[k.b]\n",
    ],
)
def test_an_edit_that_changes_anything_else_is_noticed(after: str) -> None:
    form, before, value = TomlFormat("k"), "a = 1\n[k.b]\n", {"command": "x"}
    assert form.is_only_change(before, 'a = 1\n[k.b]\n[k.dittybag]\ncommand = "x"\n', "dittybag", value)
    assert not form.is_only_change(before, after, "dittybag", value)


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
OWN = st.sampled_from(
    [
        None,
        '[mcp_servers.dittybag]\ncommand = "x"',
        '[mcp_servers.dittybag]\ncommand = "x"\n[mcp_servers.dittybag.env]\nA = "1"',
        "[mcp_servers.'dittybag'] # x\nargs = [\n]",
    ]
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A valid TOML file of any layout."""
    lines = [line.format(number) for number, line in enumerate(draw(st.lists(STATEMENTS, max_size=8)))]
    own = draw(OWN)
    if own is not None:
        lines.insert(draw(st.integers(0, len(lines))), own)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return ("\n".join(lines) + draw(st.sampled_from(["", "\n", "\n\n", "\n# end"]))).replace("\n", newline)


@settings(max_examples=150, deadline=None)
@given(documents())
def test_any_layout_survives(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), "codex")
        place.goes_there_and_back(place.write(text))
