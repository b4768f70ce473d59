"""The words of a task search, and how many tasks a result holds, on both databases."""

from __future__ import annotations

import msgspec
import pytest

from tests.contracts.contract_replay import Json, ServerUnderTest, ServerVariant, StartServer
from tests.repetitions import IS_FULL

NOTES_LENGTH = 100_000


@pytest.fixture(params=[ServerVariant("stdio"), ServerVariant("http", "postgres")], ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


def found(server: ServerUnderTest, query: str, **more: str) -> list[str]:
    return [task["title"] for task in server.data("task_search", query=query, **more)]


def test_every_word_must_occur_in_any_order_and_field(server: ServerUnderTest) -> None:
    server.text("task_create", title="Write the quarterly report", notes="For Anna")
    server.text("task_create", title="Report a bug", notes="Quarterly, by mail")
    server.text("task_create", title="Quarterly review")
    both = ["Write the quarterly report", "Report a bug"]
    for query in ("quarterly report", "report quarterly", "  REPORT \t\n  quarterly ", "port quart report"):
        assert found(server, query) == both, query
    assert found(server, "anna report") == both[:1]
    assert found(server, "anna report", fields="title") == []
    assert found(server, "report quarterly", fields="title") == both[:1]
    assert found(server, "report nothing") == []
    assert len(found(server, " \n ")) == len(found(server, "")) == 3


@pytest.mark.parametrize("query", ["café", "cafe\u0301", "CAFÉ", "CAFE\u0301", "cafe"])
def test_case_and_accents_do_not_matter(server: ServerUnderTest, query: str) -> None:
    titles = ["Café au lait", "Cafe\u0301 noir", "CAFÉ", "cafe"]
    for title in titles:
        server.text("task_create", title=title, notes="Été")
    server.text("task_create", title="Tea", notes="İstanbul, Straße, Ελληνικά, 한국어, が")
    assert found(server, query) == titles
    assert len(found(server, "ete")) == 4
    for word in ("istanbul", "STRASSE", "ελληνικα", "한국", "か\u3099"):
        assert found(server, word) == ["Tea"], word
    for word in ("か", "하", "\u0301"):
        assert found(server, word) == [], word


def test_the_words_of_a_search_are_plain_text(server: ServerUnderTest) -> None:
    server.text("task_create", title="100% of a_b", notes='"quoted" \\ OR')
    for query in ("a_b 100%", '\\ "quoted"', "or of", '" %'):
        assert found(server, query) == ["100% of a_b"], query
    for query in ("a%b", "1__%", "NOT of", 'x" OR "y'):
        assert found(server, query) == [], query
    many = " ".join(chr(0x4E00 + number) for number in range(500))
    assert found(server, many) == []


def test_the_other_searches_for_tasks_follow_the_same_rules(server: ServerUnderTest) -> None:
    server.text("task_create", title="Réserver un café", notes="Demain")
    result = server.data("search", query="cafe  reserver", kinds=["task"])
    assert [hit["title"] for hit in result["hits"]] == ["Réserver un café"]
    assert result["total"] == 1


def test_all_matches_are_returned(server: ServerUnderTest, serve: StartServer) -> None:
    for number in range(1200):
        server.text("task_create", title=f"Task {number}")
    assert len(found(server, "task")) == 1200


#: What takes more bytes than characters, in UTF-8 and in JSON; and how many tasks with it do not fit.
NOT_FITTING = {"x": 90, "é": 50, '"': 50, "\x01": 20}


@pytest.mark.parametrize("character", NOT_FITTING if IS_FULL else ["é", "\x01"])
def test_a_result_that_does_not_fit_says_how_many_tasks_are_missing(
    server: ServerUnderTest, character: str
) -> None:
    notes = character * NOTES_LENGTH
    count = NOT_FITTING[character]
    for number in range(count):
        server.text("task_create", title=f"Task {number}", notes=notes)

    def cut(tool: str, **arguments: object) -> tuple[list[Json], str]:
        first, second = server.call(tool, **arguments)["content"]
        return msgspec.json.decode(first["text"]), second["text"]

    tasks, message = cut("task_search", query="task")
    assert 0 < len(tasks) < count
    assert message == (
        f"Only the first {len(tasks)} of {count} matching tasks fit into this result. "
        "Search for more words to find the others."
    )
    tasks, message = cut("task_list")
    shown = len(tasks)
    assert message == (
        f"Only the first {shown} of these tasks fit into this result. Use offset {shown} to get the others."
    )
    tasks, message = cut("task_list", offset=1)
    assert [tasks[0]["title"], len(tasks)] == ["Task 1", shown]
    assert message.endswith(f"Use offset {shown + 1} to get the others.")
    result = server.call("task_list", limit=2)
    assert len(result["content"]) == 1
