"""A client that has tools only stores, finds, reads back and renders everything."""

from __future__ import annotations

from base64 import b64decode, b64encode
from pathlib import Path
from random import Random

import pytest

from tests.contracts.agent_calls import AgentCalls
from tests.contracts.contract_replay import VARIANTS, ServerVariant, StartServer
from tests.contracts.library_fixtures import write_twig_library
from tests.repetitions import SEED

RANDOM = Random(SEED)
#: A text of 1 MiB.
LOG = "".join(f"{number:06} zebra crossing at {RANDOM.random()}\n" for number in range(30_000))[: 1 << 20]
PNG = b"\x89PNG\r\n\x1a\n" + RANDOM.randbytes(100_000)
PDF = b"%PDF-1.7\n" + RANDOM.randbytes(60_000)


@pytest.fixture(params=VARIANTS, ids=str)
def variant(request: pytest.FixtureRequest) -> ServerVariant:
    chosen: ServerVariant = request.param
    return chosen


@pytest.fixture
def agent(serve: StartServer, tmp_path: Path) -> AgentCalls:
    home = tmp_path / "home"
    write_twig_library(home / "libraries" / "team", {"translate": "Translate to {{ tongue }}."}, "tongue")
    return AgentCalls(serve("agent", env={"DITTYBAG_HOME": str(home)}))


def test_what_is_stored_is_found_and_read_back_byte_for_byte(agent: AgentCalls) -> None:
    agent.data("save_resource", uri="file:///traffic.log", content=LOG)
    for name, content in (("penguin.png", PNG), ("penguin.pdf", PDF)):
        encoded = b64encode(content).decode()
        agent.data("save_resource", uri=f"file:///{name}", base64=encoded, title=f"The {name[-3:]} of it")
    agent.data("save_prompt", name="summary", content="Summarise {{ topic }} in one line", tags=["writing"])
    agent.data("task_add", tasks=[{"title": "Paint the fences", "notes": "Both of them", "due_date": "fri"}])

    def found(query: str) -> str:
        """Return the reference of the best result."""
        ref: str = agent.data("search", query=query)["hits"][0]["ref"]
        return ref

    assert agent.read_text(found("crossings zebra"), max_tokens=50_000) == LOG
    (image,), _ = agent.read(found("penguin.png"))
    assert (image["type"], b64decode(image["data"])) == ("image", PNG)
    (document,), _ = agent.read(found("penguin.pdf"), max_tokens=100_000)
    assert (document["type"], b64decode(document["resource"]["blob"])) == ("resource", PDF)
    assert b64decode(agent.read_text("file:///penguin.pdf")) == PDF
    assert agent.use_prompt(found("summaries writing"), topic="birds") == "Summarise birds in one line"
    assert agent.use_prompt(found("translating"), tongue="Latin") == "Translate to Latin."
    blocks, described = agent.read(found("painting a fence"))
    assert (blocks[0]["text"], described["title"]) == ("Both of them", "Paint the fences")
