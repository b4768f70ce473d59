"""Bombs in templates and files: each is answered soon, delays nobody else, and leaves nothing behind."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.torture.bombs import FILE_BOMBS, TEMPLATE_BOMBS, FileBomb, TemplateBomb
from tests.wire import Wire

Json = dict[str, Any]

#: In seconds: what a bomb may take, what anybody else may meanwhile, and what a start may.
BOMB = 0.5
OTHER = 0.1
START = 2.0
#: In KiB: how much more than before the server may hold, how much while it starts, and how much a child may.
GROWTH = 10 * 1024
PEAK = 160 * 1024
CHILD = (96 + 24) * 1024

#: So many libraries of small bombs are there at one start.
COMPANY = 8

ARGUMENTS = [{"name": "x"}, {"name": "y"}]
GREETING: Json = {"name": "good:greeting", "arguments": {"who": "you"}}


def _known(about: Path) -> str:
    """What the system says; nothing if the process has let go of it meanwhile."""
    try:
        return about.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class Client(Wire):
    """A client that has several requests under way and knows how long each took.

    Like many clients it never reads what the server logs.
    """

    def __init__(self, place: Path, profile: str) -> None:
        home, twig = place / "home", place / "twig"
        options = ("--profile", profile, "--db", str(place / "dittybag.db"))
        env = {"DITTYBAG_HOME": str(home), "TWIG_DATA_DIR": str(twig)}
        super().__init__("dittybag", "serve", *options, env=env)
        self._ids = count(1)
        self._sent: dict[int, float] = {}
        self._answers: dict[int, tuple[float, Any]] = {}

    def request(self, method: str, params: Json) -> int:
        number = next(self._ids)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        encoded = msgspec.json.encode(frame)
        self._sent[number] = time.monotonic()
        self.send(encoded)
        return number

    def answer(self, number: int, seconds: float = 10.0) -> tuple[float, Any]:
        """How long a request took, and its answer."""
        while number not in self._answers:
            self._take(seconds)
        return self._answers.pop(number)

    def _take(self, seconds: float) -> None:
        message = self.message(seconds)
        if (found := message.get("id")) in self._sent:
            self._answers[found] = time.monotonic() - self._sent.pop(found), message

    def answer_of_children(self, number: int) -> tuple[float, Any, int]:
        """Like `answer`, and how many KiB a child has held meanwhile, at most."""
        most = 0
        while number not in self._answers and number in self._sent:
            if b"\n" in self._unread or select.select([self.from_server], [], [], 0.01)[0]:
                self._take(10.0)
            else:
                most = max(most, *self.held_by_children(), 0)
        return *self._answers.pop(number), most

    def held_by_children(self) -> list[int]:
        """In KiB: the most that each of the children has ever held."""
        held = []
        for child in self.children():
            # It may die while it is looked at.
            with suppress(OSError, IndexError):
                held.append(kilobytes(child, "VmHWM"))
        return held

    def told(self, seconds: float) -> None:
        """Wait for the server to say that its list has changed."""
        while self.message(seconds).get("method") != "notifications/prompts/list_changed":
            pass

    def asked(self, method: str, params: Json) -> tuple[float, Any]:
        return self.answer(self.request(method, params))

    def listed(self, seconds: float) -> set[str]:
        """The names on the first page of prompts."""
        _, answer = self.answer(self.request("prompts/list", {}), seconds)
        return {prompt["name"] for prompt in answer["result"]["prompts"]}

    def children(self) -> list[Path]:
        """What the system knows of its children."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [Path("/proc", child) for task in tasks for child in _known(task / "children").split()]

    def watches(self) -> int:
        """How many files and folders the system tells it about."""
        about = Path(f"/proc/{self.process.pid}/fdinfo").iterdir()
        return sum(_known(descriptor).count("inotify wd:") for descriptor in about)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def good_library(directory: Path) -> None:
    """A library that nobody should miss."""
    prompts = directory / "good" / "prompts"
    prompts.mkdir(parents=True)
    argument = '[[prompts.greeting.arguments]]\nname = "who"\n'
    (directory / "good" / "twig.toml").write_text(f"[prompts.greeting]\n{argument}[prompts.plain]\n")
    (prompts / "greeting.md").write_text("Hello {{ who }}")
    (prompts / "plain.md").write_text("Plain")


def bad_library(directory: Path) -> None:
    """All templates, as prompts of one library."""
    described = []
    for bomb in TEMPLATE_BOMBS:
        for file, content in {bomb.file: bomb.source, **bomb.beside}.items():
            path = directory / "bad" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        described += [f'[prompts."{bomb.key}"]']
        described += [f'[[prompts."{bomb.key}".arguments]]\nname = "{one["name"]}"' for one in ARGUMENTS]
    (directory / "bad" / "twig.toml").write_text("\n".join(described))


def is_greeting(answer: Any) -> bool:
    messages = answer.get("result", {}).get("messages", [])
    return [message["content"]["text"] for message in messages] == ["Hello you"]


def both_children_are_ready(client: Client) -> None:
    """Also when a bomb has just killed one of them."""
    greetings = [client.request("prompts/get", GREETING) for _ in range(4)]
    assert all(is_greeting(client.answer(greeting)[1]) for greeting in greetings)


def warm_up(client: Client) -> None:
    """Everything has been imported, and small and large things have been asked for."""
    for _ in range(20):
        both_children_are_ready(client)
    for who in ("x" * 1_000_000, "\x01" * 1_000_000, "\N{BOMB}" * 250_000, list(range(100_000))):
        for _ in range(3):
            _, answer = client.asked("prompts/get", {"name": "good:greeting", "arguments": {"who": who}})
            assert "result" in answer


def kilobytes(process: Path, what: str) -> int:
    status = _known(process / "status")
    return int(status.partition(f"{what}:")[2].split()[0])


class Scene:
    """A server that has been warmed up, and what it held then."""

    def __init__(self, client: Client) -> None:
        self.client = client
        warm_up(client)
        self._memory = client.resident_kilobytes()
        self._descriptors = client.descriptors()

    def survives(self, others: Sequence[tuple[str, Json]], method: str, params: Json) -> None:
        """A bomb is answered in time, others are answered meanwhile, and nothing is left of it."""
        client = self.client
        both_children_are_ready(client)
        bomb = client.request(method, params)
        behind = [client.request(*other) for other in others]
        for (other, _), number in zip(others, behind, strict=True):
            seconds, answer = client.answer(number)
            assert "result" in answer, answer
            assert seconds < OTHER, f"{other} took {seconds:.3f} s"
        seconds, answer, held = client.answer_of_children(bomb)
        assert seconds < BOMB, f"it took {seconds:.3f} s"
        assert held <= CHILD, f"a child has held {held} KiB"
        assert "result" in answer or "error" in answer
        assert answer.get("error", {}).get("code") != -32603, answer
        self.is_as_before()

    def is_as_before(self) -> None:
        client = self.client
        growth = client.resident_kilobytes() - self._memory
        assert growth <= GROWTH, f"the server holds {growth} KiB more than before"
        assert client.descriptors() <= self._descriptors
        check_children(client)


def check_children(client: Client) -> None:
    children = client.children()
    assert len(children) <= 3
    for child in children:
        status = _known(child / "status")
        assert "State:\tZ" not in status, "a child has ended and was forgotten"
    assert max(client.held_by_children(), default=0) <= CHILD


def once_more(row: Callable[[], object]) -> None:
    """A row may fail once: on a busy machine, anything can take longer."""
    try:
        row()
    except AssertionError:
        row()


def ended(client: Client) -> None:
    """The server ends as it should, and so do its children."""
    children = client.children()
    client.hang_up()
    _, log, status = client.rest()
    assert status == 0
    assert "Traceback" not in log
    assert not [
        child for child in children if (child / "cmdline").exists() and (child / "cmdline").read_bytes()
    ]


@pytest.fixture(scope="module")
def twig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server of the twig profile, with all templates in a library."""
    place = tmp_path_factory.mktemp("twig-bombs")
    good_library(place / "twig")
    bad_library(place / "twig")
    with Client(place, "twig") as client:
        client.handshake()
        yield Scene(client)
        ended(client)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server of the default profile, with all templates in a library, as prompts and as resources."""
    place = tmp_path_factory.mktemp("own-bombs")
    good_library(place / "home" / "libraries")
    bad_library(place / "home" / "libraries")
    with Client(place, "all") as client:
        client.handshake()
        for bomb in TEMPLATE_BOMBS:
            prompt = {"name": bomb.key, "content": bomb.source, "arguments": ARGUMENTS}
            resource = {"name": bomb.key, "content": bomb.source, "uri": f"bomb://{bomb.key}/{{x}}"}
            for tool, arguments in (("create_prompt", prompt), ("create_resource", resource)):
                _, answer = client.asked("tools/call", {"name": tool, "arguments": arguments})
                # Those that cannot be parsed are refused.
                (said,) = answer["result"]["content"]
                refused = said["text"].startswith("Error: Content is not a valid template: ")
                assert answer["result"]["isError"] == refused, answer
        yield Scene(client)
        ended(client)


def rows(bombs: Sequence[TemplateBomb]) -> list[Any]:
    return [pytest.param(bomb, id=bomb.name) for bomb in bombs]


GREET: tuple[str, Json] = ("prompts/get", GREETING)
LIST: tuple[str, Json] = ("prompts/list", {})
TOOL: tuple[str, Json] = ("tools/call", {"name": "task_list", "arguments": {}})


@pytest.mark.parametrize("bomb", rows(TEMPLATE_BOMBS))
def test_a_template_in_a_twig_library_harms_nobody(bomb: TemplateBomb, twig: Scene) -> None:
    asked = {"name": f"bad:{bomb.key}", "arguments": bomb.values}
    once_more(lambda: twig.survives([GREET, LIST], "prompts/get", asked))


@pytest.mark.parametrize("bomb", rows(TEMPLATE_BOMBS[::8]))
def test_a_template_in_a_library_of_dittybag_s_own_harms_nobody(bomb: TemplateBomb, own: Scene) -> None:
    asked = {"name": f"bad:{bomb.key}", "arguments": bomb.values}
    once_more(lambda: own.survives([GREET, TOOL], "prompts/get", asked))


@pytest.mark.parametrize("bomb", rows(TEMPLATE_BOMBS[1::4]))
def test_a_template_in_a_stored_prompt_harms_nobody(bomb: TemplateBomb, own: Scene) -> None:
    asked = {"name": bomb.key, "arguments": bomb.values}
    once_more(lambda: own.survives([GREET, TOOL], "prompts/get", asked))


@pytest.mark.parametrize("bomb", rows(TEMPLATE_BOMBS[3::8]))
def test_a_template_in_a_resource_harms_nobody(bomb: TemplateBomb, own: Scene) -> None:
    asked = {"uri": f"bomb://{bomb.key}/a"}
    once_more(lambda: own.survives([GREET, TOOL], "resources/read", asked))


def test_three_bombs_at_once_end_one_after_the_other_and_tools_go_on(own: Scene) -> None:
    client = own.client
    endless = {"name": "loops-in-loops", "arguments": {}}
    bombs = [client.request("prompts/get", endless) for _ in range(3)]
    seconds, answer = client.asked(*TOOL)
    assert "result" in answer
    assert seconds < OTHER
    taken = [client.answer(bomb) for bomb in bombs]
    assert all("error" in answer for _, answer in taken)
    assert max(seconds for seconds, _ in taken) < 2 * BOMB
    both_children_are_ready(client)
    own.is_as_before()


def started(place: Path, bombs: Sequence[FileBomb]) -> None:
    """A server that finds these when it starts lists the good library, which works."""
    good_library(place / "twig")
    plant_all(place / "twig", bombs)
    began = time.monotonic()
    with Client(place, "twig") as client:
        client.handshake()
        names = client.listed(START)
        seconds = time.monotonic() - began
        assert names >= {"good:greeting", "good:plain"}
        assert seconds < START, f"the first list took {seconds:.3f} s"
        lost = sorted(names - {"good:greeting", "good:plain"})[:20]
        for number in [client.request("prompts/get", {"name": name}) for name in lost]:
            client.answer(number, START)
        _, answer = client.answer(client.request(*GREET), START)
        assert is_greeting(answer)
        notices_changes(client, place / "twig")
        peak = kilobytes(Path("/proc", str(client.process.pid)), "VmHWM")
        assert peak <= PEAK, f"the server has held {peak} KiB"
        check_children(client)


def notices_changes(client: Client, directory: Path) -> None:
    """A new prompt of the good library is listed soon after it has been written."""
    with (directory / "good" / "twig.toml").open("a") as manifest:
        manifest.write("[prompts.new]\n")
    deadline = time.monotonic() + START
    while "good:new" not in client.listed(START):
        client.told(max(deadline - time.monotonic(), 0))


def plant_all(directory: Path, bombs: Sequence[FileBomb]) -> None:
    """Every bomb in a library of its own."""
    for number, bomb in enumerate(bombs):
        folder = directory / f"lost{number}"
        folder.mkdir(parents=True)
        bomb.plant(folder)


def companies() -> Iterator[Any]:
    """Bombs that are found at the same start: a few that are small, or one that is not."""
    small = [bomb for bomb in FILE_BOMBS if not bomb.crowd]
    for bomb in FILE_BOMBS:
        if bomb not in small:
            yield pytest.param([bomb], id=bomb.name)
    for start in range(0, len(small), COMPANY):
        company = small[start : start + COMPANY]
        yield pytest.param(company, id=", ".join(bomb.name for bomb in company))


@pytest.mark.parametrize("bombs", list(companies()))
def test_files_hide_no_other_library(bombs: list[FileBomb], tmp_path: Path) -> None:
    try:
        started(tmp_path / "together", bombs)
    except AssertionError:
        # Which of them is it, if it was not the machine?
        for bomb in bombs:
            started(tmp_path / bomb.name, [bomb])


def test_all_small_files_together_hide_no_other_library(tmp_path: Path) -> None:
    started(tmp_path, [bomb for bomb in FILE_BOMBS if not bomb.crowd])


def test_what_links_out_of_a_library_lead_to_is_not_watched(tmp_path: Path) -> None:
    good_library(tmp_path / "twig")
    for number in range(500):
        (tmp_path / "outside" / str(number)).mkdir(parents=True)
    (tmp_path / "twig" / "good" / "out").symlink_to(tmp_path / "outside")
    with Client(tmp_path, "twig") as client:
        client.handshake()
        client.listed(START)
        # Whatever comes after the first list was seen by the watcher.
        notices_changes(client, tmp_path / "twig")
        assert 0 < some_watches(client) < 100


def some_watches(client: Client) -> int:
    """How many there are as soon as there are any: the watcher is made anew when folders come and go."""
    deadline = time.monotonic() + 5
    while not (found := client.watches()) and time.monotonic() < deadline:
        select.select([], [], [], 0.01)
    return found


def test_files_that_come_while_others_work_delay_nobody_for_long(tmp_path: Path) -> None:
    directory = tmp_path / "twig"
    good_library(directory)
    plant_all(tmp_path / "waiting", FILE_BOMBS)
    last = tmp_path / "waiting" / "zz_last"
    last.mkdir()
    (last / "here.md").write_text("Here")
    with Client(tmp_path, "twig") as client:
        client.handshake()
        both_children_are_ready(client)
        for library in sorted((tmp_path / "waiting").iterdir()):
            library.rename(directory / library.name)
        deadline = time.monotonic() + 10
        arrived = False
        while not arrived and time.monotonic() < deadline:
            seconds, answer = client.asked(*GREET)
            assert is_greeting(answer)
            assert seconds < 10 * OTHER
            _, answer = client.asked("prompts/get", {"name": "zz_last:here"})
            arrived = "result" in answer
        assert arrived
        ended(client)


def test_a_file_that_grows_all_the_time_delays_nobody(tmp_path: Path) -> None:
    good_library(tmp_path / "twig")
    growing = tmp_path / "twig" / "growing" / "a.md"
    growing.parent.mkdir()
    with Client(tmp_path, "twig") as client, growing.open("ab", buffering=0) as file:
        client.handshake()
        both_children_are_ready(client)
        slow = 0
        for _ in range(500):
            file.write(b"x" * 256)
            seconds, answer = client.asked(*GREET)
            assert is_greeting(answer)
            slow += seconds >= OTHER
        assert slow <= 2
        ended(client)
