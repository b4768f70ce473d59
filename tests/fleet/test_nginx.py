"""What nginx does with requests when we configure it: nothing is cut off, held back or sent twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from socket import SHUT_RDWR, create_server, socket

import msgspec
import pytest

from tests.contracts.http_server_process import BOTH, JSON, ReceivedResponse, send_request
from tests.fleet import nginx
from tests.fleet.fleet import Door, Fleet, free_port, until

BODY_BYTES = 4 * 1024 * 1024
FOUND = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@contextmanager
def upstream(answer: Callable[[socket], object]) -> Iterator[tuple[str, list[bytes]]]:
    """Something behind nginx: its address, and the heads of the requests that have come."""
    seen: list[bytes] = []

    def serve(listener: socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                seen.append(connection.recv(65536))
                answer(connection)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", seen
        finally:
            # It wakes up whoever accepts.
            listener.shutdown(SHUT_RDWR)
            thread.join(10)


@contextmanager
def in_front_of(folder: Path, *servers: str) -> Iterator[Door]:
    door = Door(free_port())
    configuration = nginx.configure(folder, servers, door.address[1])
    checked = nginx.checked(configuration)
    assert checked.returncode == 0, checked.stderr
    assert "warn" not in checked.stderr
    with nginx.running(configuration):
        # This one it answers itself.
        until(lambda: answers(door), "nginx answers")
        yield door


def answers(door: Door) -> bool:
    try:
        return door.get("/metrics").status == 404
    except OSError:
        return False


def post(door: Door, body: bytes = b"{}", **headers: str) -> ReceivedResponse:
    given = {
        "Content-Type": JSON,
        "Accept": BOTH,
        **{name.replace("_", "-"): headers[name] for name in headers},
    }
    with closing(door.connect()) as connection:
        return send_request(connection, "POST", "/mcp", body, given)


@pytest.fixture(autouse=True)
def _nginx(nginx_program: str) -> None:
    """These need nothing else."""


def test_a_write_that_a_server_has_got_is_never_sent_to_another(tmp_path: Path) -> None:
    with ExitStack() as stack:
        # They take a request, and go away instead of answering it.
        silent = [stack.enter_context(upstream(socket.close)) for _ in range(3)]
        door = stack.enter_context(in_front_of(tmp_path, *(address for address, _ in silent)))
        for number in range(1, 7):
            answer = post(door)
            assert answer.status == 502
            assert answer.headers["retry-after"] == "1"
            assert "may have been executed" in answer.json()["error"]["message"]
            assert sum(len(seen) for _, seen in silent) == number


def test_what_no_server_has_got_goes_to_the_next_one_or_is_known_not_to_be_done(tmp_path: Path) -> None:
    nobody = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:
        address, seen = stack.enter_context(upstream(lambda connection: connection.sendall(FOUND)))
        one = stack.enter_context(in_front_of(new(tmp_path / "one"), *nobody, address))
        for number in range(1, 7):
            assert post(one).status == 200
            assert len(seen) == number
        none = stack.enter_context(in_front_of(new(tmp_path / "none"), *nobody))
        answer = post(none)
        assert answer.status == 502
        assert "nothing was changed" in answer.json()["error"]["message"]


def new(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_servers_are_told_the_name_that_was_asked_for_and_one_id(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address, seen = stack.enter_context(upstream(lambda connection: connection.sendall(FOUND)))
        door = stack.enter_context(in_front_of(tmp_path, address))
        for given in ("sane.id_1", "not sane", "x" * 65):
            post(
                door,
                HttpServerProcess="dittybag.example.org:8443",
                X_Request_Id=given,
                X_Forwarded_Proto="https",
            )
        fields = [
            dict(
                line.decode().lower().split(": ", 1) for line in head.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
            )
            for head in seen
        ]
        assert {told["host"] for told in fields} == {"dittybag.example.org:8443"}
        assert {told["x-forwarded-proto"] for told in fields} == {"http"}
        ids = [told["x-request-id"] for told in fields]
        assert ids[0] == "sane.id_1"
        assert not {"not sane", "x" * 65}.intersection(ids)
        until(lambda: ids == logged_ids(tmp_path), f"{ids} are in the log")


def logged_ids(folder: Path) -> list[str]:
    lines = [msgspec.json.decode(line) for line in (folder / "access.log").read_text().splitlines()]
    return [line["request_id"] for line in lines if line["path"] == "/mcp"]


def test_a_body_may_be_as_long_as_dittybag_takes_it_and_no_longer(fleet: Fleet, token: str) -> None:
    ping = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    answer = post(fleet.front, ping.ljust(BODY_BYTES), Authorization=f"Bearer {token}", X_Request_Id="long")
    assert (answer.status, answer.json()["result"]) == (200, {})
    assert answer.headers["x-request-id"] == "long"
    refused = post(fleet.front, ping.ljust(BODY_BYTES + 1), Authorization=f"Bearer {token}")
    assert refused.status == 413
    assert str(BODY_BYTES) in refused.json()["error"]["message"]


def test_what_each_server_counts_is_not_to_be_had_from_outside(fleet: Fleet) -> None:
    assert fleet.front.get("/metrics").status == 404
    assert fleet.members[0].get("/metrics").status == 401
