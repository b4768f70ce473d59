"""JSON files of all layouts: Dittybag gets in, and out again without a trace."""

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
from tests.clients.machines import LAUNCH, OTHER, Place

ENTRY = LAUNCH.entry(Place(Path("/"), "zed").target.client)

LAYOUTS = {
    "no file's worth": "",
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
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, "zed")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_put_in_is_taken_out_to_the_byte(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout])
    place.goes_there_and_back(before)
    assert place.remove().state == "absent"
    assert place.read() == before


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_that_was_there_is_moved(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout]).decode()
    place.connect()
    assert place.entry() == ENTRY
    rest = iter(place.text())
    assert all(letter in rest for letter in before if not letter.isspace())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_without_a_record_everything_else_stays_in_its_place(place: Place, layout: str) -> None:
    before = place.write(LAYOUTS[layout]).decode()
    place.connect()
    place.forget()
    assert place.remove().state == "removed"
    assert place.entry() is None
    missing = iter("".join(place.text().split()))
    assert all(letter in missing for letter in "".join(before.split()))


NEIGHBOURS = [
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
@pytest.mark.parametrize(("before", "after"), NEIGHBOURS)
def test_the_entry_looks_like_its_neighbours(place: Place, before: str, after: str, newline: str) -> None:
    place.write(before.replace("\n", newline))
    place.connect()
    assert place.read() == after.replace("\n", newline).encode()


@pytest.mark.parametrize(
    "previous",
    [
        '{"command": "uvx", "args": ["other"] /* mine */ }',
        '{\n  "command": "/old/dittybag", // old\n  "args": ["serve",],\n}',
        "null",
        '"text"',
        "[]",
    ],
)
def test_an_entry_that_was_there_before_comes_back(place: Place, previous: str) -> None:
    before = place.write(f'{{"context_servers": {{ "b": 1,\n "dittybag" : {previous} , "a": {{}} }} }}')
    outcome = place.connect()
    assert (outcome.state, outcome.has_previous) == ("updated", True)
    assert place.entry() == ENTRY
    place.connect(OTHER)
    outcome = place.remove()
    assert (outcome.state, outcome.has_previous) == ("removed", True)
    assert place.read() == before


def test_what_its_owner_added_to_an_entry_stays_in_it(place: Place) -> None:
    place.write(
        '{"context_servers": {"dittybag": {"command": "/old/dittybag", "args": ["serve"], "timeout": 60,'
        ' "env": {"DITTYBAG_HOME": "/old", "DITTYBAG_ACTOR": "me"}}}}'
    )
    place.connect()
    assert place.entry() == {
        **ENTRY,
        "env": {"DITTYBAG_HOME": "/srv/bag", "DITTYBAG_ACTOR": "me"},
        "timeout": 60,
    }
    assert place.connect().state == "unchanged"


FOREIGN_CHANGES: dict[str, tuple[str, Callable[[str], str], str]] = {
    "another server after ours": (
        '{\n  "context_servers": {\n    "a": {}\n  }\n}\n',
        lambda text: text.replace("    }\n  }\n}", '    },\n    "b": {}\n  }\n}'),
        '{\n  "context_servers": {\n    "a": {},\n    "b": {}\n  }\n}\n',
    ),
    "another server before ours": (
        '{\n  "context_servers": {\n    "a": {}\n  }\n}\n',
        lambda text: text.replace('    "a": {}', '    "0": {},\n    "a": {}'),
        '{\n  "context_servers": {\n    "0": {},\n    "a": {}\n  }\n}\n',
    ),
    "the other server gone": (
        '{\n  "context_servers": {\n    "a": {}\n  }\n}\n',
        lambda text: text.replace('    "a": {},\n', ""),
        '{\n  "context_servers": {\n  }\n}\n',
    ),
    "a comment that stands between": (
        '{\n  "context_servers": {\n    "a": {} // x\n  }\n}\n',
        lambda text: text.replace("// x", "// longer"),
        '{\n  "context_servers": {\n    "a": {} // longer\n  }\n}\n',
    ),
    "a server after ours, and a comment before": (
        '{\n  "context_servers": {\n    "a": {} // x\n  }\n}\n',
        lambda text: text.replace("    }\n  }\n}", '    },\n    "b": {}\n  }\n}'),
        '{\n  "context_servers": {\n    "a": {}, // x\n    "b": {}\n  }\n}\n',
    ),
    "another server in what we made": (
        "{}\n",
        lambda text: text.replace("    }\n  }\n}", '    },\n    "b": {}\n  }\n}'),
        '{\n  "context_servers": {\n    "b": {}\n  }\n}\n',
    ),
    "another setting": (
        '{\n  "theme": "dark"\n}\n',
        lambda text: text.replace("dark", "light and bright"),
        '{\n  "theme": "light and bright"\n}\n',
    ),
    "all laid out anew": (
        '{"theme":"dark"}',
        lambda text: json.dumps(json.loads(text), indent=4),
        '{\n    "theme": "dark"\n}',
    ),
    "laid out anew, and nothing else in it": (
        "",
        lambda text: json.dumps(json.loads(text)),
        "",
    ),
}


@pytest.mark.parametrize("change", FOREIGN_CHANGES)
def test_what_others_changed_meanwhile_stays(place: Place, change: str) -> None:
    before, changed, after = FOREIGN_CHANGES[change]
    place.write(before)
    place.connect()
    connected = place.text()
    place.write(changed(connected))
    assert place.text() != connected
    assert place.remove().state == "removed"
    assert place.text() == after


def test_an_entry_that_someone_took_for_another_program_is_left_alone(place: Place) -> None:
    place.write("{}")
    place.connect()
    mine = place.write('{"context_servers": {"dittybag": {"command": "bag", "args": ["serve"]}}}')
    with pytest.raises(ClientEntryForeign, match="starts another program"):
        place.remove()
    assert place.read() == mine
    place.connect()
    place.remove()
    assert place.read() == mine


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
            '{"context_servers": {"dittybag": {}, "dittybag": {}}}',
            "'dittybag' occurs more than once",
        ),
        (r'{"context_servers": {"dittybag": {}, "d\u0069ttybag": {}}}', "'dittybag' occurs more than once"),
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
def test_what_is_not_understood_is_refused_and_left_as_it_is(place: Place, text: str, problem: str) -> None:
    place.write(text)
    before = place.everything()
    for attempt in (place.connect, place.remove):
        with pytest.raises(ClientFileRefused) as refused:
            attempt()
        assert problem in refused.value.problem
    after = place.everything()
    after.pop("dittybag/connect/lock")
    assert after == before


@pytest.mark.parametrize(
    "after",
    [
        '{"a": 2, "k": {"b": {}, "dittybag": {"command": "x"}}}',
        '{"a": 1, "k": {"dittybag": {"command": "x"}}}',
        '{"a": 1, "k": {"b": {}, "dittybag": {"command": "y"}}}',
        '{"a": 1, "k": {"b": {}, "dittybag": {"command": "x"}}, "c": 1}',
        '{"a": 1, "a": 1, "k": {"b": {}, "dittybag": {"command": "x"}}}',
        '{"a": 1, "k": {"b": {}}}',
    ],
)
def test_an_edit_that_changes_anything_else_is_noticed(after: str) -> None:
    form, before, value = JsonFormat("k"), '{"a": 1, "k": {"b": {}}}', {"command": "x"}
    assert form.is_only_change(
        before, '{"a": 1, "k": {"b": {}, "dittybag": {"command": "x"}}}', "dittybag", value
    )
    assert not form.is_only_change(before, after, "dittybag", value)


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


def listed(items: st.SearchStrategy[str], marks: str) -> st.SearchStrategy[str]:
    """Items between brackets, with all that may stand between them."""

    def joined(parts: list[tuple[str, str, str]], inner: str, *, trailing: bool) -> str:
        text = ",".join(before + item + after for before, item, after in parts)
        return f"{marks[0]}{text}{',' if trailing and parts else ''}{inner}{marks[1]}"

    return st.builds(joined, st.lists(st.tuples(GAPS, items, GAPS), max_size=4), GAPS, trailing=st.booleans())


def members(keys: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(keys, GAPS, GAPS, values).map(lambda parts: f"{parts[0]}{parts[1]}:{parts[2]}{parts[3]}")


VALUES = st.recursive(
    SCALARS, lambda inner: listed(inner, "[]") | listed(members(NAMES, inner), "{}"), max_leaves=6
)


@st.composite
def documents(draw: st.DrawFn, *, may_have_entry: bool = True) -> str:
    """A JSON object with or without servers, laid out in any way."""
    servers = draw(listed(members(NAMES, VALUES), "{}"))
    if may_have_entry and draw(st.booleans()):
        own = draw(members(st.just('"dittybag"'), VALUES))
        servers = f"{{{draw(GAPS)}{own}{',' if servers.count(':') else ''}{servers[1:]}"
    container = draw(members(st.just('"context_servers"'), st.just(servers)))
    parts = draw(st.lists(st.tuples(GAPS, members(NAMES, VALUES), GAPS), max_size=3))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), (draw(GAPS), container, draw(GAPS)))
    text = ",".join("".join(part) for part in parts)
    is_trailing = draw(st.booleans())
    comma = "," if parts and is_trailing else ""
    whole = f"{draw(GAPS)}{{{text}{comma}{draw(GAPS)}}}{draw(GAPS)}"
    return whole.replace("\n", draw(st.sampled_from(["\n", "\r\n", "\r"])))


@settings(max_examples=150, deadline=None)
@given(documents(), st.booleans())
def test_any_layout_survives(text: str, is_marked: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), "zed")
        place.goes_there_and_back(place.write(("\ufeff" if is_marked else "") + text))


@settings(max_examples=150, deadline=None)
@given(documents(may_have_entry=False), st.data())
def test_any_change_elsewhere_survives(text: str, data: st.DataObject) -> None:
    gaps = [match.end() for match in re.finditer(r"[{},]", text)]
    at = data.draw(st.sampled_from(gaps))
    marked = f"{text[:at]}/*@*/{text[at:]}"
    after = marked.replace("/*@*/", "/* is\n longer */")
    try:
        JsonFormat("context_servers").entries(after)
    except MalformedConfig:
        # Inside of a string or a comment.
        return
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder), "zed")
        place.write(marked)
        place.connect()
        place.write(place.text().replace("/*@*/", "/* is\n longer */"))
        place.remove()
        # Where a comma had to be put before the comment, a blank may be left.
        assert "".join(place.text().split()) == "".join(after.split())
