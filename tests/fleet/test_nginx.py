"""Requests through nginx with our configuration: none is truncated, delayed or sent twice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from socket import SHUT_RDWR, create_server, socket

import msgspec
import pytest

from tests.contracts.http_server_process import BOTH, JSON, ReceivedResponse, send_request
from tests.fleet import nginx_process
from tests.fleet.server_fleet import Fleet, ServerEndpoint, free_port, wait_until

BODY_BYTES = 12 * 1024 * 1024
OK_RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def respond_ok(connection: socket) -> None:
    connection.sendall(OK_RESPONSE)


@contextmanager
def run_upstream(respond: Callable[[socket], object]) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server behind nginx. Yields its address and the headers of the requests it received."""
    received: list[bytes] = []

    def serve(listener: socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                received.append(connection.recv(65536))
                respond(connection)

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}", received
        finally:
            # Ends the accept() of the thread.
            listener.shutdown(SHUT_RDWR)
            thread.join(10)


@contextmanager
def run_proxy(folder: Path, *servers: str) -> Iterator[ServerEndpoint]:
    proxy = ServerEndpoint(free_port())
    configuration = nginx_process.configure(folder, servers, proxy.address[1])
    check = nginx_process.check_configuration(configuration)
    assert check.returncode == 0, check.stderr
    assert "warn" not in check.stderr
    with nginx_process.run_nginx(configuration):
        wait_until(lambda: is_running(proxy), "nginx is running")
        yield proxy


def is_running(proxy: ServerEndpoint) -> bool:
    # nginx answers this path itself.
    try:
        return proxy.get("/metrics").status == 404
    except OSError:
        return False


def post(proxy: ServerEndpoint, body: bytes = b"{}", **headers: str) -> ReceivedResponse:
    all_headers = {
        "Content-Type": JSON,
        "Accept": BOTH,
        **{name.replace("_", "-"): headers[name] for name in headers},
    }
    with closing(proxy.connect()) as connection:
        return send_request(connection, "POST", "/mcp", body, all_headers)


@pytest.fixture(autouse=True)
def _nginx(nginx_program: str) -> None:
    """Skip without nginx, also the tests that need no fleet."""


def test_a_write_that_a_server_received_is_never_sent_to_another(tmp_path: Path) -> None:
    with ExitStack() as stack:
        # They accept a request and close the connection without a response.
        silent = [stack.enter_context(run_upstream(socket.close)) for _ in range(3)]
        proxy = stack.enter_context(run_proxy(tmp_path, *(address for address, _ in silent)))
        for number in range(1, 7):
            response = post(proxy)
            assert response.status == 502
            assert response.headers["retry-after"] == "1"
            assert "may have been executed" in response.json()["error"]["message"]
            assert sum(len(received) for _, received in silent) == number


def test_a_write_that_no_server_received_goes_to_the_next_or_is_reported_as_not_executed(
    tmp_path: Path,
) -> None:
    unused = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    with ExitStack() as stack:
        address, received = stack.enter_context(run_upstream(respond_ok))
        one = stack.enter_context(run_proxy(make_folder(tmp_path / "one"), *unused, address))
        for number in range(1, 7):
            assert post(one).status == 200
            assert len(received) == number
        none = stack.enter_context(run_proxy(make_folder(tmp_path / "none"), *unused))
        response = post(none)
        assert response.status == 502
        assert "nothing was changed" in response.json()["error"]["message"]


def make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def test_servers_receive_the_original_host_and_a_valid_request_id(tmp_path: Path) -> None:
    with ExitStack() as stack:
        address, received = stack.enter_context(run_upstream(respond_ok))
        proxy = stack.enter_context(run_proxy(tmp_path, address))
        for given in ("valid.id_1", "not valid", "x" * 65):
            post(
                proxy,
                Host="dittybag.example.org:8443",
                X_Request_Id=given,
                X_Forwarded_Proto="https",
            )
        headers = [
            dict(
                line.decode().lower().split(": ", 1) for line in head.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]
            )
            for head in received
        ]
        assert {each["host"] for each in headers} == {"dittybag.example.org:8443"}
        assert {each["x-forwarded-proto"] for each in headers} == {"http"}
        ids = [each["x-request-id"] for each in headers]
        assert ids[0] == "valid.id_1"
        assert not {"not valid", "x" * 65}.intersection(ids)
        # Each process of nginx writes its own requests.
        wait_until(lambda: sorted(ids) == sorted(logged_ids(tmp_path)), f"{ids} are in the log")


def logged_ids(folder: Path) -> list[str]:
    lines = [msgspec.json.decode(line) for line in (folder / "access.log").read_text().splitlines()]
    return [line["request_id"] for line in lines if line["path"] == "/mcp"]


def test_nginx_and_dittybag_have_the_same_body_limit(fleet: Fleet, token: str) -> None:
    ping = msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    response = post(fleet.proxy, ping.ljust(BODY_BYTES), Authorization=f"Bearer {token}", X_Request_Id="long")
    assert (response.status, response.json()["result"]) == (200, {})
    assert response.headers["x-request-id"] == "long"
    refused = post(fleet.proxy, ping.ljust(BODY_BYTES + 1), Authorization=f"Bearer {token}")
    assert refused.status == 413
    assert str(BODY_BYTES) in refused.json()["error"]["message"]


def test_the_metrics_of_a_server_are_not_public(fleet: Fleet) -> None:
    assert fleet.proxy.get("/metrics").status == 404
    assert fleet.servers[0].get("/metrics").status == 401
