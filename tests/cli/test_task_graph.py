"""`dittybag task graph`: tree, Mermaid, JSON and SVG."""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dittybag.assembly.workspace_session import with_workspace
from dittybag.cli.output import display_width
from dittybag.cli.task_mermaid import escape_label, mermaid_lines
from dittybag.cli.task_tree import ASCII, MAX_DEPTH, UNICODE, TreeSigns, tree_lines
from dittybag.config import environment_with_home, settings
from dittybag.domain.task_graph import TaskGraph
from dittybag.domain.task_order import direct_edges, work_order
from dittybag.services.caller import Caller
from dittybag.services.workspace import Workspace
from tests.cli.cli_runner import data, dittybag, failure
from tests.cli.pseudo_terminal import run_in_terminal, strip_colours
from tests.domain.task_graphs import MINUTE, NOW, chain, graph_of, graphs, large_graph
from tests.e2e.xss_payloads import PAYLOADS

RELEASE = graph_of(
    {1: [], 2: [1], 3: [2], 4: [1, 3], 5: [], 6: [3], 7: [4, 6], 8: [], 9: []},
    {5: 7, 6: 7},
    {
        1: {"title": "Design", "status": "done"},
        2: {"title": "Build", "status": "doing", "holder": "codex", "held_until": NOW + MINUTE},
        3: {"title": "Test", "priority": 4, "assignee": "ann"},
        4: {"title": "Guide"},
        5: {"title": "Notes", "status": "review", "assignee": "bob"},
        6: {"title": "Tag", "assignee": "ann"},
        7: {"title": "Release", "priority": 5},
        8: {"title": "Old", "status": "dropped"},
        9: {"title": "Call", "priority": 1, "assignee": "bob"},
    },
)


def draw(
    graph: TaskGraph, signs: TreeSigns = UNICODE, width: int | None = None, selected: int | None = None
) -> list[str]:
    return [line.branches + line.text for line in tree_lines(graph, NOW, signs, width, selected)]


# Tree


def test_the_tree_shows_each_task_above_what_it_waits_for() -> None:
    assert draw(RELEASE) == [
        "· 7 !5 Release  waits for 3, critical",
        "├─ ◎ 5 !3 Notes  review by bob",
        "├─ · 4 !3 Guide  waits for 1, critical",
        "│  └─ · 3 !4 Test  waits for 1, assigned to ann, critical",
        "│     └─ ◐ 2 !3 Build  doing by codex, critical",
        "│        └─ ✓ 1 !3 Design  done",
        "└─ · 6 !3 Tag  waits for 1, assigned to ann",
        "   └─ (see 3) Test",
        "○ 9 !1 Call  ready, assigned to bob",
        "✗ 8 !3 Old  dropped",
    ]


def test_the_tree_in_ascii() -> None:
    lines = draw(RELEASE, ASCII)
    assert lines[:4] == [
        "[.] 7 !5 Release  waits for 3, critical",
        "|- [?] 5 !3 Notes  review by bob",
        "|- [.] 4 !3 Guide  waits for 1, critical",
        "|  `- [.] 3 !4 Test  waits for 1, assigned to ann, critical",
    ]
    assert all(line.isascii() for line in lines)


def test_a_long_chain_continues_in_further_trees() -> None:
    lines = draw(chain(MAX_DEPTH * 2))
    deepest = "   " * (MAX_DEPTH - 1)
    assert lines[MAX_DEPTH] == f"{deepest}└─ (see 10) Task 10"
    assert lines[MAX_DEPTH + 1] == "· 10 !3 Task 10  waits for 1, critical"
    assert len(lines) == MAX_DEPTH * 2 + 1


@given(st.one_of(graphs(9), graphs(9, cyclic=True)))
def test_each_task_is_shown_once_and_every_edge_is_a_branch(graph: TaskGraph) -> None:
    shown: list[int] = []
    branches: set[tuple[int, int]] = set()
    above: list[int] = []
    for line in draw(graph):
        found = re.fullmatch(r"((?:[│├└ ][─ ] )*)(?:\(see (\d+)\) |. (\d+) !\d )Task .*", line)
        assert found is not None, line
        depth, node = len(found[1]) // 3, int(found[2] or found[3])
        if found[3]:
            shown.append(node)
        del above[depth:]
        if above:
            branches.add((node, above[-1]))
        above.append(node)
    assert sorted(shown) == sorted(graph.tasks)
    assert branches == {(edge.source, edge.target) for edge in direct_edges(work_order(graph))}


@pytest.mark.parametrize(
    "new_graph", [partial(chain, 10_000), partial(large_graph, 10_000, 3)], ids=["chain", "large"]
)
def test_10_000_tasks_are_shown(new_graph: Callable[[], TaskGraph]) -> None:
    lines = draw(new_graph())
    full = [line for line in lines if "(see " not in line]
    assert len(full) == 10_000
    assert max(map(len, lines)) < 100


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("title", ["word " * 40, "x" * 500, "日本語" * 50], ids=["words", "word", "wide"])
def test_titles_are_cut_to_the_width_of_the_terminal(title: str, signs: TreeSigns) -> None:
    graph = graph_of(
        {1: [], 2: [1], 3: [1, 2], 4: []}, {1: 3}, {node: {"title": title} for node in range(1, 5)}
    )
    for line in draw(graph, signs, 80):
        assert 77 <= display_width(line) <= 80
        assert signs.ellipsis in line


# Mermaid


def test_a_flowchart() -> None:
    graph = graph_of(
        {1: [], 2: [1], 3: [1, 2], 4: []},
        {4: 3},
        {1: {"status": "doing", "assignee": "ann"}, 2: {"title": "Fix #12: a_b"}, 4: {"priority": 5}},
    )
    assert list(mermaid_lines(graph, NOW)) == [
        "flowchart LR",
        '    t4["4 !5<br/>Task 4"]:::ready',
        '    t1["1 !3 ann<br/>Task 1"]:::doing',
        '    t2["2 !3<br/>Fix #35;12#58; a#95;b"]:::blocked',
        '    t3["3 !3<br/>Task 3"]:::blocked',
        "    t4 -.-> t3",
        "    t1 --> t2",
        "    t2 --> t3",
        "    classDef ready fill:#e2f3e7,stroke:#22683a,color:#241c15",
        "    classDef blocked fill:#f3eee6,stroke:#b5a898,color:#241c15",
        "    classDef doing fill:#e3f0fa,stroke:#1d5a8c,color:#241c15",
        "    classDef critical stroke:#9a4310,stroke-width:3px",
        "    class t1,t2,t3 critical",
        "    linkStyle 1,2 stroke:#9a4310,stroke-width:3px",
    ]


#: All lines that a flowchart can have, whatever the titles are.
MERMAID_LINES = (
    r"flowchart LR",
    r'    t\d+\["\d+ ![1-5](?: LABEL)?<br/>(?:LABEL)?"\]:::[a-z]+'.replace(
        "LABEL", r"(?:[\w ,?!()/]|#\d+;)+"
    ),
    r"    t\d+ (-->|-\.->) t\d+",
    r"    classDef [a-z]+ [a-z0-9#:,-]+",
    r"    class t\d+(,t\d+)* critical",
    r"    linkStyle \d+(,\d+)* [a-z0-9#:,-]+",
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
    assert len(list(mermaid_lines(chain(10_000), NOW))) == 1 + 10_000 + 9_999 + 2 + 3


# The command


async def fill(workspace: Workspace) -> None:
    caller = Caller((await workspace.projects.find("default")).id, "ann")
    await workspace.projects.create("auth", actor="ann")
    create = workspace.tasks.create
    await create(caller, title="Design")
    await create(caller, title="Build [31m\u202e red", blocked_by=(1,))
    await create(caller, title="Test", blocked_by=(2,), project="auth", priority=5)
    await create(caller, title="Release", blocked_by=(1, 3), project="auth")
    await create(caller, title="Notes", parent=4)
    await create(caller, title="Call the bank")
    await workspace.tasks.complete_all(caller, [1])


async def fill_with_many(workspace: Workspace) -> None:
    caller = Caller((await workspace.projects.find("default")).id, "ann")
    await workspace.tasks.create_all(caller, [{"title": "First"}])
    # More edges than Mermaid draws, and more tasks than the picture shows.
    others = [{"title": "Other", "blocked_by": (1,)} for _ in range(501)]
    await workspace.tasks.create_all(caller, others)


def fill_home(folder: Path, work: Callable[[Workspace], Awaitable[None]]) -> Path:
    with ThreadPoolExecutor(1) as executor:
        executor.submit(with_workspace, settings(environment_with_home(os.fspath(folder))), work).result()
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_home(tmp_path_factory.mktemp("home"), fill)


def test_what_is_left_out_is_said_on_standard_error(tmp_path: Path) -> None:
    fill_home(tmp_path, fill_with_many)
    picture = dittybag(tmp_path, "task", "graph", "--format", "svg")
    assert picture.stderr == "note: the picture shows 300 of 502 tasks\n"
    ET.fromstring(picture.stdout)
    flowchart = dittybag(tmp_path, "task", "graph", "--format", "mermaid")
    assert flowchart.stderr == (
        "note: Mermaid draws at most 500 edges, unless you raise its setting maxEdges\n"
    )
    assert len(dittybag(tmp_path, "task", "graph").stdout.splitlines()) == 501 * 2 + 2


def test_the_command_prints_a_tree_of_open_tasks(home: Path) -> None:
    assert dittybag(home, "task", "graph").stdout == (
        "· 4 !3 Release  waits for 2, critical\n"
        "├─ ○ 5 !3 Notes  ready\n"
        "└─ · 3 !5 Test  waits for 1, critical\n"
        "   └─ ○ 2 !3 Build [31m\u202e red  ready, critical\n"
        "○ 6 !3 Call the bank  ready\n"
        "\n"
        "Critical path: 3 tasks (2, 3, 4)\n"
    )
    assert "✓ 1 !3 Design  done\n" in dittybag(home, "task", "graph", "--include-done").stdout
    of_project = dittybag(home, "task", "graph", "-p", "auth").stdout
    assert of_project.startswith(
        "· 4 !3 Release  waits for 2, critical\n└─ · 3 !5 Test  waits for 1, critical\n\n"
    )


def test_the_command_prints_what_is_around_a_task(home: Path) -> None:
    assert dittybag(home, "task", "graph", "3").stdout == (
        "· 4 !3 Release  waits for 2, critical\n"
        "└─ · 3 !5 Test  waits for 1, critical\n"
        "   └─ ○ 2 !3 Build [31m\u202e red  ready, critical\n"
        "\n"
        "Critical path: 3 tasks (2, 3, 4)\n"
        "Task 3 blocks 1 task directly, 1 in all\n"
    )
    assert "Design" in dittybag(home, "task", "graph", "3", "--include-done").stdout
    # A done task is shown if it was asked for.
    assert "✓ 1 !3 Design  done\n" in dittybag(home, "task", "graph", "1").stdout
    missing = dittybag(home, "task", "graph", "99", "--json", status=3)
    assert failure(missing)["message"] == "Task 99 not found"


def test_a_terminal_gets_colours_and_no_control_characters(home: Path) -> None:
    screen = run_in_terminal(home, "task", "graph")
    assert "└─ \x1b[32m\x1b[1m○ 2 !3 Build [31m\ufffd red  ready, critical\x1b[0m\n" in screen
    assert "\u202e" not in screen
    plain = strip_colours(run_in_terminal(home, "task", "graph", variables={"PYTHONIOENCODING": "latin-1"}))
    assert "|- [ ] 5 !3 Notes  ready\n" in plain


def test_the_command_prints_json(home: Path) -> None:
    found = data(dittybag(home, "task", "graph", "--json"))
    assert found == data(dittybag(home, "task", "graph", "--format", "json"))
    assert list(found) == ["tasks", "edges", "critical_path", "ready", "left_out"]
    assert found["edges"] == [
        {"from": 2, "to": 3, "kind": "blocks"},
        {"from": 3, "to": 4, "kind": "blocks"},
        {"from": 5, "to": 4, "kind": "part"},
    ]
    assert (found["critical_path"], found["ready"], found["left_out"]) == ([2, 3, 4], [2, 5, 6], 0)
    task = next(task for task in found["tasks"] if task["id"] == 2)
    assert task == {
        "id": 2,
        "title": "Build [31m\u202e red",
        "status": "todo",
        "state": "ready",
        "priority": 3,
        "project": None,
        "due_date": None,
        "assignee": None,
        "holder": None,
        "held_until": None,
        "blocked_by": [1],
        "parent": None,
        "waits_for": 0,
        "layer": 0,
        "blocks": 1,
        "blocks_in_all": 2,
    }


def test_a_done_task_blocks_nothing(home: Path) -> None:
    found = data(dittybag(home, "task", "graph", "--include-done", "--json"))
    design = next(task for task in found["tasks"] if task["id"] == 1)
    assert (design["state"], design["blocks"], design["blocks_in_all"]) == ("done", 0, 0)
    assert {"from": 1, "to": 2, "kind": "blocks"} in found["edges"]


def test_the_command_prints_mermaid(home: Path) -> None:
    lines = dittybag(home, "task", "graph", "--format", "mermaid").stdout.splitlines()
    assert lines[0] == "flowchart LR"
    assert "    t5 -.-> t4" in lines
    require_mermaid(lines)


def test_the_command_prints_a_picture(home: Path) -> None:
    root = ET.fromstring(dittybag(home, "task", "graph", "3", "--include-done", "--format", "svg").stdout)
    assert root.get("role") == "img"
    titles = [item.text for item in root.iter("{http://www.w3.org/2000/svg}title")]
    assert titles == [
        "Graph of 4 tasks",
        "1 · P3 · done: Design",
        "2 · P3 · ready: Build [31m\u202e red",
        "3 · P5 · waits for 1: Test",
        "4 · P3 · waits for 2: Release",
    ]


def test_options_that_exclude_each_other(home: Path) -> None:
    for arguments, message in (
        (("3", "-p", "auth"), "TASK and --project cannot be used together"),
        (("--json", "--format", "svg"), "--json and --format svg cannot be used together"),
    ):
        assert message in dittybag(home, "task", "graph", *arguments, status=2).stderr


def test_an_empty_graph(tmp_path: Path) -> None:
    empty = dittybag(tmp_path, "task", "graph")
    assert (empty.stdout, empty.stderr) == (
        "",
        "No open tasks found\nhint: to add a task, run: dittybag task add TITLE\n",
    )
    assert data(dittybag(tmp_path, "task", "graph", "--json"))["tasks"] == []
