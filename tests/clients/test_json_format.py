"""JSON files of all layouts: adding and removing an entry preserves them byte for byte."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dittybag.clients.client_errors import ClientEntryForeign, ClientFileRefused, MalformedConfig
from dittybag.clients.json_format import JsonFormat
from tests.clients.client_file_fixture import LAUNCH, ClientFileFixture
from tests.repetitions import repetitions

ENTRY = LAUNCH.entry(ClientFileFixture(Path("/"), "zed").target.client)

LAYOUTS = {
    "zero bytes": "",
    "blank": " \n\n",
    "empty": "{}",
    "empty with a line": "{}\n",
    "empty with a blank": "{ }",
    "empty over lines": "{\n\n}\n",
    "only comments": "// my settings\n/* none\nyet */",
    "comments before": "// Zed settings\n//\n{\n}\n",
    "comment inside": "{\n  // nothing yet\n}\n",
    "comment inside, on the line": "{ // nothing yet\n}",
    "block comment inside": "{ /* nothing */ }",
    "one line": '{"theme": "dark", "context_servers": {"a": {"command": "a"}}}',
    "minified": '{"theme":"dark","context_servers":{"a":{"command":"a"}}}',
    "minified, none": '{"theme":"dark","context_servers":{}}',
    "minified, no key": '{"theme":"dark"}',
    "two spaces": '{\n  "context_servers": {\n    "a": {"command": "a"}\n  },\n  "z": 1\n}\n',
    "four spaces": '{\n    "context_servers": {\n        "a": {\n            "b": 1\n        }\n    }\n}\n',
    "tabs": '{\n\t"theme": "x",\n\t"context_servers": {\n\t\t"a": {}\n\t}\n}',
    "no indent": '{\n"context_servers": {\n"a": {}\n}\n}',
    "windows": '{\r\n  "theme": "x",\r\n  "context_servers": {\r\n    "a": {}\r\n  }\r\n}\r\n',
    "old mac": '{\r  "theme": "x"\r}\r',
    "mark": '\ufeff{\n  "theme": "x"\n}\n',
    "trailing commas": '{\n  "context_servers": {\n    "a": [1, 2,],\n  },\n  "z": {"y": 1,},\n}\n',
    "trailing comma on a line": '{"context_servers": {"a": {},},}',
    "comment after": '{\n  "context_servers": {\n    "a": {} // keep\n  }\n}\n',
    "comment after the comma": '{\n  "context_servers": {\n    "a": {}, // keep\n  }\n}\n',
    "comments after": '{\n  "context_servers": {\n    "a": {} /* 1 */ /* 2\n 3 */ // 4\n    // 5\n  }\n}\n',
    "comment below": '{\n  "context_servers": {\n    "a": {}\n    // "b": {}\n  }\n}\n',
    "comment before the brace": '{"context_servers": {"a": {} /* keep */ }}',
    "line comment in one line": '{"context_servers": {"a": {} // keep\n}}',
    "commas first": '{\n    "a": 1\n  , "context_servers": {\n      "b": {}\n    , "c": {}\n  }\n}\n',
    "allman": '{\n  "context_servers":\n  {\n    "a":\n    {\n    }\n  }\n}\n',
    "empty allman": '{\n  "context_servers":\n  {\n  }\n}\n',
    "empty container": '{\n  "context_servers": {},\n  "z": 1\n}\n',
    "empty container with a comment": '{\n  "context_servers": {\n    // none\n  },\n  "z": 1\n}\n',
    "many on a line": '{ "a": 1, "b": 2,\n  "c": 3, "d": 4 }',
    "closing on the line": '{\n  "context_servers": {\n    "a": {} } }',
    "looks like it": r'{"x": "\"context_servers\": {\"dittybag\": 1} // no", "y": "/* }"}',
    "escaped key": r'{"context\u005fservers": {"a": {}}}',
    "same key elsewhere": '{"projects": {"dittybag": 1, "context_servers": {"dittybag": {}}}}',
    "duplicates elsewhere": '{"a": 1, "a": 2, "context_servers": {"b": {}, "b": {}}}',
    "numbers": '{"a": 1.50, "b": 1e400, "c": -0, "d": 123456789012345678901234567890, "e": "\\ud800"}',
    "unicode": '{\n  "größe": "😀 \u2028",\n  "context_servers": {"日本": {}}\n}\n',
    "after the end": '{"a": 1} // the end\n\n',
}


@pytest.fixture
def client_file(tmp_path: Path) -> ClientFileFixture:
    return ClientFileFixture(tmp_path, "zed")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_entry_is_added_and_removed(client_file: ClientFileFixture, layout: str) -> None:
    before = client_file.write(LAYOUTS[layout])
    client_file.check_round_trip(before)
    assert client_file.remove().state == "absent"
    assert client_file.read() == before
    client_file.connect()
    assert client_file.entry() == ENTRY
    assert _is_in(before.decode(), client_file.text())
    client_file.delete_copies()
    assert client_file.remove().state == "removed"
    assert client_file.entry() is None
    assert _is_in(before.decode(), client_file.text())


def _is_in(before: str, after: str) -> bool:
    """Whether the letters of a text are in another one, in order."""
    rest = iter(after)
    return all(letter in rest for letter in before if not letter.isspace())


FORMATTING_EXAMPLES = [
    (
        """\
{
    "theme": "x", // mine
    "context_servers": {
        "a": {} // keep
    }
}
""",
        """\
{
    "theme": "x", // mine
    "context_servers": {
        "a": {}, // keep
        "dittybag": {
            "command": "/opt/dittybag/bin/dittybag",
            "args": ["serve"],
            "env": {"DITTYBAG_HOME": "/srv/bag"}
        }
    }
}
""",
    ),
    (
        """\
{
\t"a": [
\t\t1,
\t],
}
""",
        """\
{
\t"a": [
\t\t1,
\t],
\t"context_servers": {
\t\t"dittybag": {
\t\t\t"command": "/opt/dittybag/bin/dittybag",
\t\t\t"args": ["serve"],
\t\t\t"env": {"DITTYBAG_HOME": "/srv/bag"}
\t\t}
\t},
}
""",
    ),
    ('{"a":1}', f'{{"a":1, "context_servers": {{"dittybag": {json.dumps(ENTRY)}}}}}'),
]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(("before", "after"), FORMATTING_EXAMPLES)
def test_the_entry_is_formatted_like_its_neighbours(
    client_file: ClientFileFixture, before: str, after: str, newline: str
) -> None:
    client_file.write(before.replace("\n", newline))
    client_file.connect()
    assert client_file.read() == after.replace("\n", newline).encode()


def test_additions_of_the_user_to_an_entry_are_kept(client_file: ClientFileFixture) -> None:
    client_file.write(
        '{"context_servers": {"dittybag": {"command": "/old/dittybag", "args": ["serve"], "timeout": 60,'
        ' "env": {"DITTYBAG_HOME": "/old", "DITTYBAG_ACTOR": "me"}}}}'
    )
    client_file.connect()
    assert client_file.entry() == {
        **ENTRY,
        "env": {"DITTYBAG_HOME": "/srv/bag", "DITTYBAG_ACTOR": "me"},
        "timeout": 60,
    }
    assert client_file.connect().state == "unchanged"


CHANGES_BY_OTHERS: dict[str, tuple[str, Callable[[str], str], str]] = {
    "servers around ours, and a comment": (
        '{\n  "context_servers": {\n    "a": {} // x\n  }\n}\n',
        lambda text: (
            text.replace('    "a": {}', '    "0": {},\n    "a": {}')
            .replace("// x", "// longer")
            .replace("    }\n  }\n}", '    },\n    "b": {}\n  }\n}')
        ),
        '{\n  "context_servers": {\n    "0": {},\n    "a": {}, // longer\n    "b": {}\n  }\n}\n',
    ),
    "the other server gone": (
        '{\n  "context_servers": {\n    "a": {}\n  }\n}\n',
        lambda text: text.replace('    "a": {},\n', ""),
        '{\n  "context_servers": {\n  }\n}\n',
    ),
    "another setting": (
        '{\n  "theme": "dark"\n}\n',
        lambda text: text.replace("dark", "light and bright"),
        '{\n  "theme": "light and bright",\n  "context_servers": {\n  }\n}\n',
    ),
    "reformatted": (
        '{"theme":"dark"}',
        lambda text: json.dumps(json.loads(text), indent=4),
        '{\n    "theme": "dark",\n    "context_servers": {\n    }\n}',
    ),
}


@pytest.mark.parametrize("change", CHANGES_BY_OTHERS)
def test_later_changes_by_others_are_kept(client_file: ClientFileFixture, change: str) -> None:
    before, changed, after = CHANGES_BY_OTHERS[change]
    client_file.write(before)
    client_file.connect()
    client_file.write(changed(client_file.text()))
    assert client_file.remove().state == "removed"
    assert client_file.text() == after


def test_an_entry_changed_to_another_program_is_not_removed(client_file: ClientFileFixture) -> None:
    client_file.write("{}")
    client_file.connect()
    mine = client_file.write('{"context_servers": {"dittybag": {"command": "bag", "args": ["serve"]}}}')
    with pytest.raises(ClientEntryForeign, match="starts another program"):
        client_file.remove()
    assert client_file.read() == mine
    with pytest.raises(ClientEntryForeign, match="starts another program"):
        client_file.connect()
    assert client_file.read() == mine


OLD = '{"command": "/old/dittybag", "args": ["serve"]}'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"context_servers"', "not a JSON object"),
        ('{"context_servers": []}', "'context_servers' is not an object"),
        ('{"context_servers": null}', "'context_servers' is not an object"),
        ('{"context_servers": {}, "context_servers": {}}', "'context_servers' occurs more than once"),
        (
            f'{{"context_servers": {{"dittybag": {OLD}, "dittybag": {OLD}}}}}',
            "'dittybag' occurs more than once",
        ),
        (
            rf'{{"context_servers": {{"dittybag": {OLD}, "d\u0069ttybag": {OLD}}}}}',
            "'dittybag' occurs more than once",
        ),
        ("{", "unexpected end, line 1"),
        ('{"a": 1\n "b": 2}', "unexpected character, line 2"),
        ('{"a": 1}}', "unexpected character, line 1"),
        ('{"a": 1} {}', "unexpected character, line 1"),
        ("{'a': 1}", "unexpected character, line 1"),
        ("{a: 1}", "unexpected character, line 1"),
        ("{,}", "unexpected character, line 1"),
        ('{"a": 1,,}', "unexpected character, line 1"),
        ('{"a" 1}', "unexpected character, line 1"),
        ('{"a": }', "unexpected character, line 1"),
        ('{"a": [1 2]}', "Expecting ',' delimiter, line 1"),
        ('{"a": [1}, "b": {2]}', "not valid JSON"),
        ('{"a": nope}', "not valid JSON"),
        ('{"a": NaN}', "NaN is not a valid number"),
        ('{"a": "\n"}', "unexpected character, line 1"),
        ('{"a": {"b": {"c": "\t"}}}', "not valid JSON"),
        ('{"a": 1} /* open', "unexpected character, line 1"),
        ('{"a": 1 /* open }', "unexpected character, line 1"),
        ("{" + '"a":{' * 5000 + "}" * 5001, "nested too deeply"),
        ('{"a":' + "[" * 100_000, "nested too deeply"),
        ("/* " * 300_000, "unexpected character, line 1"),
        ('{"a": {"b": {' + '"x /* ' * 300_000, "unexpected end"),
    ],
    ids=range(30),
)
def test_an_invalid_file_is_refused_and_not_changed(
    client_file: ClientFileFixture, text: str, problem: str
) -> None:
    client_file.write(text)
    before = client_file.all_files()
    for attempt in (client_file.connect, client_file.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert problem in refused.value.problem
    after = client_file.all_files()
    after.pop("dittybag/connect/lock")
    assert after == before


GAPS = st.lists(
    st.sampled_from(
        [
            " ",
            "  ",
            "\t",
            "\n",
            "\n  ",
            "\n\n    ",
            "/**/",
            "/* } */",
            "/*\n,*/",
            "// ]\n",
            '// "\n  ',
            "//\n",
        ]
    ),
    max_size=3,
).map("".join)
NAMES = st.text(max_size=6).filter(lambda name: name not in ("context_servers", "dittybag")).map(json.dumps)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
).map(lambda value: json.dumps(value, ensure_ascii=False))


def bracketed(items: st.SearchStrategy[str], marks: str) -> st.SearchStrategy[str]:
    """Items between brackets, with white space, comments and commas around them."""

    def joined(parts: list[tuple[str, str, str]], inner: str, *, trailing: bool) -> str:
        text = ",".join(before + item + after for before, item, after in parts)
        return f"{marks[0]}{text}{',' if trailing and parts else ''}{inner}{marks[1]}"

    return st.builds(joined, st.lists(st.tuples(GAPS, items, GAPS), max_size=4), GAPS, trailing=st.booleans())


def members(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(keys, GAPS, GAPS, values).map(lambda parts: f"{parts[0]}{parts[1]}:{parts[2]}{parts[3]}")


VALUES = st.recursive(
    SCALARS, lambda inner: bracketed(inner, "[]") | bracketed(members(NAMES, inner), "{}"), max_leaves=6
)


@st.composite
def config_texts(draw: st.DrawFn, *, has_servers: bool = False) -> str:
    """A JSON object with or without servers, in any layout."""
    servers = draw(bracketed(members(NAMES, VALUES), "{}"))
    container = draw(members(st.just('"context_servers"'), st.just(servers)))
    parts = draw(st.lists(st.tuples(GAPS, members(NAMES, VALUES), GAPS), max_size=3))
    if has_servers or draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), (draw(GAPS), container, draw(GAPS)))
    text = ",".join("".join(part) for part in parts)
    is_trailing = draw(st.booleans())
    comma = "," if parts and is_trailing else ""
    whole = f"{draw(GAPS)}{{{text}{comma}{draw(GAPS)}}}{draw(GAPS)}"
    return whole.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))


@settings(max_examples=repetitions(75, 2000), deadline=None)
@given(config_texts(), st.booleans())
def test_any_layout_is_restored(text: str, has_bom: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        client_file = ClientFileFixture(Path(folder), "zed")
        client_file.check_round_trip(client_file.write(("\ufeff" if has_bom else "") + text))


@settings(max_examples=repetitions(75, 2000), deadline=None)
@given(config_texts(has_servers=True), st.data())
def test_any_change_elsewhere_is_kept(text: str, data: st.DataObject) -> None:
    gaps = [match.end() for match in re.finditer(r"[{},]", text)]
    at = data.draw(st.sampled_from(gaps))
    marked = f"{text[:at]}/*@*/{text[at:]}"
    after = marked.replace("/*@*/", "/* is\n longer */")
    try:
        JsonFormat("context_servers").entries(after)
    except MalformedConfig:
        # The position is inside a string or comment.
        return
    with tempfile.TemporaryDirectory() as folder:
        client_file = ClientFileFixture(Path(folder), "zed")
        client_file.write(marked)
        client_file.connect()
        client_file.write(client_file.text().replace("/*@*/", "/* is\n longer */"))
        client_file.remove()
        # If a comma was inserted before the comment, a blank may remain.
        assert "".join(client_file.text().split()) == "".join(after.split())
