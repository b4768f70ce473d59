"""`dittybag task graph`: the Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.cli.task_graph import escape_label, mermaid_lines
from tests.cli.cli_runner import data, dittybag, failure
from tests.domain.task_graphs import NOW, chain, graph_of
from tests.e2e.xss_payloads import PAYLOADS


def test_a_flowchart() -> None:
    graph = graph_of(
        {1: [], 2: [1], 3: [1, 2], 4: []},
        {4: 3},
        {1: {"status": "doing", "assignee": "ann"}, 2: {"title": "Fix #12: a_b"}, 4: {"priority": 5}},
    )
    assert list(mermaid_lines(graph, NOW)) == [
        "flowchart LR",
        '    t1["1 !3 ann<br/>Task 1"]:::doing',
        '    t2["2 !3<br/>Fix #35;12#58; a#95;b"]:::blocked',
        '    t3["3 !3<br/>Task 3"]:::blocked',
        '    t4["4 !5<br/>Task 4"]:::ready',
        "    t1 --> t2",
        "    t1 --> t3",
        "    t2 --> t3",
        "    t4 -.-> t3",
        "    classDef ready fill:#e2f3e7,stroke:#22683a,color:#241c15",
        "    classDef blocked fill:#f3eee6,stroke:#b5a898,color:#241c15",
        "    classDef doing fill:#e3f0fa,stroke:#1d5a8c,color:#241c15",
    ]


#: All lines that a flowchart can have, whatever the titles are.
MERMAID_LINES = (
    r"flowchart LR",
    r'    t\d+\["\d+ ![1-5](?: LABEL)?<br/>(?:LABEL)?"\]:::[a-z]+'.replace(
        "LABEL", r"(?:[\w ,?!()/]|#\d+;)+"
    ),
    r"    t\d+ (-->|-\.->) t\d+",
    r"    classDef [a-z]+ [a-z0-9#:,-]+",
)
HOSTILE = (
    *PAYLOADS,
    '"]; click t1 callback',
    "a\n    click t1 href \"javascript:alert(1)\"\nb",
    "`**bold**`",
    "%%{init: {'securityLevel': 'loose'}}%%",
    "%% comment",
    "1. list", "- list", "=== heading", "end", "subgraph x", "---", "[(x)]", "{{x}}", "#quot;#35;&quot;",
    "ﬂ°°60¶ß", "\x00\x1b[31m\ud800\u202e", "__proto__", "\\u0022", "$$x^2$$", "fa:fa-user",
)  # fmt: skip


def decode(label: str) -> str:
    """Return what Mermaid shows for a label."""
    return unescape(re.sub(r"#(\d+);", r"&#\1;", label))


def require_mermaid(lines: Sequence[str]) -> None:
    for line in lines:
        assert any(re.fullmatch(pattern, line) for pattern in MERMAID_LINES), line


def test_no_title_breaks_out_of_its_label() -> None:
    count = len(HOSTILE)
    graph = graph_of(
        {node: [node - 1] if node > 1 else [] for node in range(1, count + 1)},
        fields={node: {"title": title, "assignee": HOSTILE[-node]} for node, title in enumerate(HOSTILE, 1)},
    )
    lines = list(mermaid_lines(graph, NOW))
    require_mermaid(lines)
    assert sum(line.startswith("    t") and "[" in line for line in lines) == count


@given(st.text())
def test_a_label_is_shown_as_it_is(text: str) -> None:
    label = escape_label(text)
    assert not set(label) & set("\"'`[]{}<>&%|\\\n\r_*~$@^:=+-.ﬂ°¶ß")
    assert re.fullmatch(r"(?:[^#;]|#\d+;)*", label)
    # Python decodes no numbers of control characters and surrogates, and maps some to Windows' letters.
    if all(letter.isprintable() for letter in text):
        assert decode(label).replace("\u200b", "") == text


@pytest.mark.parametrize("text", ["$$x^2$$", "$$$$", "fa:fa-user", "fab:fa-x", "ﬂ°°60¶ß"])
def test_a_label_has_no_formulas_icons_and_escapes_of_mermaid(text: str) -> None:
    assert not re.search(r"\$\$|fa.?:fa-|ﬂ°|¶ß", decode(escape_label(text)))


def test_a_flowchart_of_10_000_tasks() -> None:
    assert len(list(mermaid_lines(chain(10_000), NOW))) == 1 + 10_000 + 9_999 + 2


# The command


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    dittybag(home, "project", "create", "auth")
    for task in (
        ("Design",),
        ("Build [31m\u202e red", "--blocked-by", "1"),
        ("Test", "--blocked-by", "2", "-p", "auth", "-P", "5"),
        ("Release", "--blocked-by", "1,3", "-p", "auth"),
        ("Notes", "--parent", "4"),
        ("Call the bank",),
    ):
        dittybag(home, "task", "add", *task)
    dittybag(home, "task", "done", "1")
    return home


def test_more_edges_than_mermaid_draws_are_noted(tmp_path: Path) -> None:
    others = "".join(f"{number},Other,1\n" for number in range(2, 503))
    dittybag(tmp_path, "import", "-", stdin=f"id,title,blocked_by\n1,First,\n{others}")
    assert dittybag(tmp_path, "task", "graph").stderr == (
        "note: Mermaid draws at most 500 edges, unless you raise its setting maxEdges\n"
    )


def test_the_command_prints_the_open_tasks(home: Path) -> None:
    flowchart = dittybag(home, "task", "graph").stdout
    lines = flowchart.splitlines()
    require_mermaid(lines)
    assert [line for line in lines if "->" in line] == [
        "    t2 --> t3",
        "    t3 --> t4",
        "    t5 -.-> t4",
    ]
    assert data(dittybag(home, "task", "graph", "--json")) == {
        "flowchart": flowchart.rstrip("\n"),
        "left_out": 0,
    }
    assert "Design" in dittybag(home, "task", "graph", "--include-done").stdout
    of_project = dittybag(home, "task", "graph", "-p", "auth").stdout
    assert ("t3[" in of_project, "t2[" in of_project) == (True, False)


def test_the_command_prints_what_is_around_a_task(home: Path) -> None:
    around = dittybag(home, "task", "graph", "3").stdout
    assert [number for number in range(1, 7) if f"t{number}[" in around] == [2, 3, 4]
    assert "Design" in dittybag(home, "task", "graph", "3", "--include-done").stdout
    # A done task is shown if it was asked for.
    assert "t1[" in dittybag(home, "task", "graph", "1").stdout
    missing = dittybag(home, "task", "graph", "99", "--json", status=3)
    assert failure(missing)["message"] == "Task 99 not found"
    both = dittybag(home, "task", "graph", "3", "-p", "auth", status=2)
    assert "TASK and --project cannot be used together" in both.stderr


def test_an_empty_graph(tmp_path: Path) -> None:
    empty = dittybag(tmp_path, "task", "graph")
    assert (empty.stdout, empty.stderr) == (
        "",
        "No open tasks found\nhint: to add a task, run: dittybag task add TITLE\n",
    )
    assert data(dittybag(tmp_path, "task", "graph", "--json"))["flowchart"] == "flowchart LR"
