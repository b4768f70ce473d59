"""Template and file bombs: each is answered in time, delays no other call, and leaves nothing behind."""

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

from tests.stdio_server_process import StdioServerProcess
from tests.torture.bombs import FILE_BOMBS, TEMPLATE_BOMBS, FileBomb, TemplateBomb

Json = dict[str, Any]

#: Maximum seconds for a bomb, for another call meanwhile, and for a server start.
BOMB_SECONDS = 0.5
OTHER_SECONDS = 0.1
START_SECONDS = 2.0
#: Maximum KiB of server memory growth, of server memory during a start, and of child process memory.
GROWTH_KIB = 24 * 1024
PEAK_KIB = 160 * 1024
CHILD_KIB = (96 + 24) * 1024

#: The number of small file bombs for one server start.
GROUP_SIZE = 8

ARGUMENTS = [{"name": "x"}, {"name": "y"}]
GREETING: Json = {"name": "good:greeting", "arguments": {"who": "you"}}


def _read_proc(file: Path) -> str:
    """Read a file under /proc; empty if the process has ended meanwhile."""
    try:
        return file.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


class BombClient(StdioServerProcess):
    """A client that pipelines requests and measures how long each takes.

    Like many clients, it never reads the server's standard error.
    """

    def __init__(self, folder: Path, profile: str) -> None:
        home, twig = folder / "home", folder / "twig"
        options = ("--profile", profile, "--db", str(folder / "dittybag.db"))
        env = {"DITTYBAG_HOME": str(home), "TWIG_DATA_DIR": str(twig)}
        # A forked server would share memory with this process, and its memory is measured.
        super().__init__("dittybag", "serve", *options, env=env, prefix=("env",))
        self._ids = count(1)
        self._sent: dict[int, float] = {}
        self._responses: dict[int, tuple[float, Any]] = {}

    def request(self, method: str, params: Json) -> int:
        number = next(self._ids)
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        encoded = msgspec.json.encode(frame)
        self._sent[number] = time.monotonic()
        self.send(encoded)
        return number

    def wait_for(self, number: int, seconds: float = 10.0) -> tuple[float, Any]:
        """Return the seconds that a request took, and its response."""
        while number not in self._responses:
            self._read_message(seconds)
        return self._responses.pop(number)

    def _read_message(self, seconds: float) -> None:
        message = self.message(seconds)
        if (found := message.get("id")) in self._sent:
            self._responses[found] = time.monotonic() - self._sent.pop(found), message

    def wait_with_child_memory(self, number: int) -> tuple[float, Any, int]:
        """Like `wait_for`, but also return the maximum KiB of child memory meanwhile."""
        most = 0
        while number not in self._responses and number in self._sent:
            if b"\n" in self._unread or select.select([self.from_server], [], [], 0.01)[0]:
                self._read_message(10.0)
            else:
                most = max(most, *self.child_peak_memory(), 0)
        return *self._responses.pop(number), most

    def child_peak_memory(self) -> list[int]:
        """Return the peak memory of each child, in KiB."""
        held = []
        for child in self.children():
            # The child may end meanwhile.
            with suppress(OSError, IndexError):
                held.append(kilobytes(child, "VmHWM"))
        return held

    def wait_for_list_changed(self, seconds: float) -> None:
        """Wait for the notification that the list of prompts has changed."""
        while self.message(seconds).get("method") != "notifications/prompts/list_changed":
            pass

    def request_and_wait(self, method: str, params: Json) -> tuple[float, Any]:
        return self.wait_for(self.request(method, params))

    def list_prompt_names(self, seconds: float) -> set[str]:
        """Return the names on the first page of prompts."""
        _, response = self.wait_for(self.request("prompts/list", {}), seconds)
        return {prompt["name"] for prompt in response["result"]["prompts"]}

    def children(self) -> list[Path]:
        """Return the /proc folders of the server's children."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [Path("/proc", child) for task in tasks for child in _read_proc(task / "children").split()]

    def watches(self) -> int:
        """Return the number of the server's inotify watches."""
        entries = Path(f"/proc/{self.process.pid}/fdinfo").iterdir()
        return sum(_read_proc(descriptor).count("inotify wd:") for descriptor in entries)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def write_good_library(directory: Path) -> None:
    """Write a valid library."""
    prompts = directory / "good" / "prompts"
    prompts.mkdir(parents=True)
    argument = '[[prompts.greeting.arguments]]\nname = "who"\n'
    (directory / "good" / "twig.toml").write_text(f"[prompts.greeting]\n{argument}[prompts.plain]\n")
    (prompts / "greeting.md").write_text("Hello {{ who }}")
    (prompts / "plain.md").write_text("Plain")


def write_bad_library(directory: Path) -> None:
    """Write a library with every template bomb as a prompt."""
    described = []
    for bomb in TEMPLATE_BOMBS:
        for file, content in {bomb.file: bomb.source, **bomb.other_files}.items():
            path = directory / "bad" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        described += [f'[prompts."{bomb.key}"]']
        described += [f'[[prompts."{bomb.key}".arguments]]\nname = "{one["name"]}"' for one in ARGUMENTS]
    (directory / "bad" / "twig.toml").write_text("\n".join(described))


def is_greeting(response: Any) -> bool:
    messages = response.get("result", {}).get("messages", [])
    return [message["content"]["text"] for message in messages] == ["Hello you"]


def wait_for_children(client: BombClient) -> None:
    """Wait until both child processes answer, even if a bomb has just killed one."""
    greetings = [client.request("prompts/get", GREETING) for _ in range(4)]
    assert all(is_greeting(client.wait_for(greeting)[1]) for greeting in greetings)


def warm_up(client: BombClient) -> None:
    """Make small and large requests, so that all modules are imported and memory is allocated."""
    for _ in range(20):
        wait_for_children(client)
    for who in ("x" * 1_000_000, "\x01" * 1_000_000, "\N{BOMB}" * 250_000, list(range(9_000))):
        for _ in range(3):
            _, response = client.request_and_wait(
                "prompts/get", {"name": "good:greeting", "arguments": {"who": who}}
            )
            assert "result" in response


def kilobytes(process: Path, what: str) -> int:
    status = _read_proc(process / "status")
    return int(status.partition(f"{what}:")[2].split()[0])


#: What the writer opens when it counts the uses of prompts: the database, its log and the file of turns.
WRITER_DESCRIPTORS = 3


class WarmServer:
    """A warmed-up server, with its memory and descriptors at that time."""

    def __init__(self, client: BombClient) -> None:
        self.client = client
        warm_up(client)
        self._memory = client.resident_kilobytes()
        self._descriptors = client.descriptors() + WRITER_DESCRIPTORS

    def assert_survives(self, others: Sequence[tuple[str, Json]], method: str, params: Json) -> None:
        """Check that a bomb and other calls meanwhile are answered in time, and nothing leaks."""
        client = self.client
        wait_for_children(client)
        bomb = client.request(method, params)
        behind = [client.request(*other) for other in others]
        for (other, _), number in zip(others, behind, strict=True):
            seconds, response = client.wait_for(number)
            assert "result" in response, response
            assert seconds < OTHER_SECONDS, f"{other} took {seconds:.3f} s"
        seconds, response, held = client.wait_with_child_memory(bomb)
        assert seconds < BOMB_SECONDS, f"the bomb took {seconds:.3f} s"
        assert held <= CHILD_KIB, f"a child used {held} KiB"
        assert "result" in response or "error" in response
        assert response.get("error", {}).get("code") != -32603, response
        self.assert_restored()

    def assert_restored(self) -> None:
        client = self.client
        growth = client.resident_kilobytes() - self._memory
        assert growth <= GROWTH_KIB, f"the server's memory grew by {growth} KiB"
        assert client.descriptors() <= self._descriptors
        check_children(client)


def check_children(client: BombClient) -> None:
    children = client.children()
    assert len(children) <= 3
    for child in children:
        status = _read_proc(child / "status")
        assert "State:\tZ" not in status, "a child is a zombie"
    assert max(client.child_peak_memory(), default=0) <= CHILD_KIB


def retry_once(check: Callable[[], object]) -> None:
    """Run a check and repeat it once if it fails: on a busy machine, a single call can be slow."""
    try:
        check()
    except AssertionError:
        check()


def assert_clean_exit(client: BombClient) -> None:
    """Check that the server and its children end without an error."""
    children = client.children()
    client.hang_up()
    _, log, status = client.rest()
    assert status == 0
    assert "Traceback" not in log
    assert not [
        child for child in children if (child / "cmdline").exists() and (child / "cmdline").read_bytes()
    ]


@pytest.fixture(scope="module")
def twig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmServer]:
    """A server with the `twig` profile, with all template bombs in a library."""
    folder = tmp_path_factory.mktemp("twig-bombs")
    write_good_library(folder / "twig")
    write_bad_library(folder / "twig")
    with BombClient(folder, "twig") as client:
        client.handshake()
        yield WarmServer(client)
        assert_clean_exit(client)


@pytest.fixture(scope="module")
def default_profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmServer]:
    """A server with the `all` profile, with all template bombs in a library, as prompts and as resources."""
    folder = tmp_path_factory.mktemp("own-bombs")
    write_good_library(folder / "home" / "libraries")
    write_bad_library(folder / "home" / "libraries")
    with BombClient(folder, "all") as client:
        client.handshake()
        for bomb in TEMPLATE_BOMBS:
            prompt = {"name": bomb.key, "content": bomb.source, "arguments": ARGUMENTS}
            resource = {"name": bomb.key, "content": bomb.source, "uri": f"bomb://{bomb.key}/{{x}}"}
            for tool, arguments in (("create_prompt", prompt), ("create_resource", resource)):
                _, response = client.request_and_wait("tools/call", {"name": tool, "arguments": arguments})
                # Templates that cannot be parsed are refused.
                (content,) = response["result"]["content"]
                refused = content["text"].startswith("Error: Content is not a valid template: ")
                assert response["result"]["isError"] == refused, response
        yield WarmServer(client)
        assert_clean_exit(client)


def bomb_params(bombs: Sequence[TemplateBomb]) -> list[Any]:
    return [pytest.param(bomb, id=bomb.name) for bomb in bombs]


GREET: tuple[str, Json] = ("prompts/get", GREETING)
LIST: tuple[str, Json] = ("prompts/list", {})
TOOL: tuple[str, Json] = ("tools/call", {"name": "task_list", "arguments": {}})


@pytest.mark.parametrize("bomb", bomb_params(TEMPLATE_BOMBS))
def test_a_template_bomb_in_a_twig_library_is_contained(bomb: TemplateBomb, twig: WarmServer) -> None:
    params = {"name": f"bad:{bomb.key}", "arguments": bomb.arguments}
    retry_once(lambda: twig.assert_survives([GREET, LIST], "prompts/get", params))


@pytest.mark.parametrize("bomb", bomb_params(TEMPLATE_BOMBS[::8]))
def test_a_template_bomb_in_a_dittybag_library_is_contained(
    bomb: TemplateBomb, default_profile: WarmServer
) -> None:
    params = {"name": f"bad:{bomb.key}", "arguments": bomb.arguments}
    retry_once(lambda: default_profile.assert_survives([GREET, TOOL], "prompts/get", params))


@pytest.mark.parametrize("bomb", bomb_params(TEMPLATE_BOMBS[1::4]))
def test_a_template_bomb_in_a_stored_prompt_is_contained(
    bomb: TemplateBomb, default_profile: WarmServer
) -> None:
    params = {"name": bomb.key, "arguments": bomb.arguments}
    retry_once(lambda: default_profile.assert_survives([GREET, TOOL], "prompts/get", params))


@pytest.mark.parametrize("bomb", bomb_params(TEMPLATE_BOMBS[3::8]))
def test_a_template_bomb_in_a_resource_is_contained(bomb: TemplateBomb, default_profile: WarmServer) -> None:
    params = {"uri": f"bomb://{bomb.key}/a"}
    retry_once(lambda: default_profile.assert_survives([GREET, TOOL], "resources/read", params))


def test_three_concurrent_bombs_are_stopped_and_do_not_delay_tools(default_profile: WarmServer) -> None:
    client = default_profile.client
    endless = {"name": "loops-in-loops", "arguments": {}}
    bombs = [client.request("prompts/get", endless) for _ in range(3)]
    seconds, response = client.request_and_wait(*TOOL)
    assert "result" in response
    assert seconds < OTHER_SECONDS
    taken = [client.wait_for(bomb) for bomb in bombs]
    assert all("error" in response for _, response in taken)
    assert max(seconds for seconds, _ in taken) < 2 * BOMB_SECONDS
    wait_for_children(client)
    default_profile.assert_restored()


def assert_starts_with(folder: Path, bombs: Sequence[FileBomb]) -> None:
    """Check that a server that starts with these file bombs still serves the valid library."""
    write_good_library(folder / "twig")
    write_file_bombs(folder / "twig", bombs)
    began = time.monotonic()
    with BombClient(folder, "twig") as client:
        client.handshake()
        names = client.list_prompt_names(START_SECONDS)
        seconds = time.monotonic() - began
        assert names >= {"good:greeting", "good:plain"}
        assert seconds < START_SECONDS, f"the first list took {seconds:.3f} s"
        lost = sorted(names - {"good:greeting", "good:plain"})[:20]
        for number in [client.request("prompts/get", {"name": name}) for name in lost]:
            client.wait_for(number, START_SECONDS)
        _, response = client.wait_for(client.request(*GREET), START_SECONDS)
        assert is_greeting(response)
        assert_notices_changes(client, folder / "twig")
        peak = kilobytes(Path("/proc", str(client.process.pid)), "VmHWM")
        assert peak <= PEAK_KIB, f"the server used {peak} KiB"
        check_children(client)


def assert_notices_changes(client: BombClient, directory: Path) -> None:
    """Check that a new prompt in the valid library is listed soon after it was written."""
    with (directory / "good" / "twig.toml").open("a") as manifest:
        manifest.write("[prompts.new]\n")
    deadline = time.monotonic() + START_SECONDS
    while "good:new" not in client.list_prompt_names(START_SECONDS):
        client.wait_for_list_changed(max(deadline - time.monotonic(), 0))


def write_file_bombs(directory: Path, bombs: Sequence[FileBomb]) -> None:
    """Write each bomb into its own library."""
    for number, bomb in enumerate(bombs):
        folder = directory / f"lost{number}"
        folder.mkdir(parents=True)
        bomb.write_files(folder)


def bomb_groups() -> Iterator[Any]:
    """Yield the bombs for each server start: several small ones, or one with many files."""
    small = [bomb for bomb in FILE_BOMBS if not bomb.many_files]
    for bomb in FILE_BOMBS:
        if bomb not in small:
            yield pytest.param([bomb], id=bomb.name)
    for start in range(0, len(small), GROUP_SIZE):
        group = small[start : start + GROUP_SIZE]
        yield pytest.param(group, id=", ".join(bomb.name for bomb in group))


@pytest.mark.parametrize("bombs", list(bomb_groups()))
def test_file_bombs_do_not_hide_other_libraries(bombs: list[FileBomb], tmp_path: Path) -> None:
    try:
        assert_starts_with(tmp_path / "together", bombs)
    except AssertionError:
        # Find the bomb that fails, unless the machine was just busy.
        for bomb in bombs:
            assert_starts_with(tmp_path / bomb.name, [bomb])


def test_all_small_file_bombs_together_do_not_hide_other_libraries(tmp_path: Path) -> None:
    small = [bomb for bomb in FILE_BOMBS if not bomb.many_files]
    folders = (tmp_path / str(number) for number in count())
    retry_once(lambda: assert_starts_with(next(folders), small))


def test_targets_of_links_out_of_a_library_are_not_watched(tmp_path: Path) -> None:
    write_good_library(tmp_path / "twig")
    for number in range(500):
        (tmp_path / "outside" / str(number)).mkdir(parents=True)
    (tmp_path / "twig" / "good" / "out").symlink_to(tmp_path / "outside")
    with BombClient(tmp_path, "twig") as client:
        client.handshake()
        client.list_prompt_names(START_SECONDS)
        # The watcher reports only changes after the first list.
        assert_notices_changes(client, tmp_path / "twig")
        assert 0 < wait_for_watches(client) < 100


def wait_for_watches(client: BombClient) -> int:
    """Wait until there are watches and return their number: they are re-created when folders change."""
    deadline = time.monotonic() + 5
    while not (found := client.watches()) and time.monotonic() < deadline:
        select.select([], [], [], 0.01)
    return found


def test_new_file_bombs_do_not_delay_calls_for_long(tmp_path: Path) -> None:
    directory = tmp_path / "twig"
    write_good_library(directory)
    write_file_bombs(tmp_path / "waiting", FILE_BOMBS)
    last = tmp_path / "waiting" / "zz_last"
    last.mkdir()
    (last / "here.md").write_text("Here")
    with BombClient(tmp_path, "twig") as client:
        client.handshake()
        wait_for_children(client)
        for library in sorted((tmp_path / "waiting").iterdir()):
            library.rename(directory / library.name)
        deadline = time.monotonic() + 10
        arrived = False
        while not arrived and time.monotonic() < deadline:
            seconds, response = client.request_and_wait(*GREET)
            assert is_greeting(response)
            assert seconds < 10 * OTHER_SECONDS
            _, response = client.request_and_wait("prompts/get", {"name": "zz_last:here"})
            arrived = "result" in response
        assert arrived
        assert_clean_exit(client)


def test_a_constantly_growing_file_delays_no_call(tmp_path: Path) -> None:
    write_good_library(tmp_path / "twig")
    growing = tmp_path / "twig" / "growing" / "a.md"
    growing.parent.mkdir()
    with BombClient(tmp_path, "twig") as client, growing.open("ab", buffering=0) as file:
        client.handshake()
        wait_for_children(client)
        slow = 0
        for _ in range(500):
            file.write(b"x" * 256)
            seconds, response = client.request_and_wait(*GREET)
            assert is_greeting(response)
            slow += seconds >= OTHER_SECONDS
        assert slow <= 2
        assert_clean_exit(client)
