"""The selector that handles the input of a stdio server: what it must not hold up, and what replaces it."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Iterator

import pytest

from dittybag.protocol.server import Server
from dittybag.protocol.transports.input_selector import InputSelector
from dittybag.protocol.transports.stdio import serve

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    source, sink = os.pipe()
    yield source, sink
    os.close(source)
    os.close(sink)


@pytest.fixture
def selector() -> InputSelector:
    return InputSelector()


@pytest.fixture
def loop(selector: InputSelector) -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.SelectorEventLoop(selector)
    yield loop
    loop.close()


def read_into(chunks: asyncio.Queue[bytes], source: int) -> Callable[[], None]:
    return lambda: chunks.put_nowait(os.read(source, 100))


def test_timers_threads_and_other_descriptors_are_served_while_input_is_awaited(
    loop: asyncio.AbstractEventLoop, selector: InputSelector, pipe: Pipe
) -> None:
    source, sink = pipe

    async def main() -> None:
        chunks: asyncio.Queue[bytes] = asyncio.Queue()
        selector.watch_input(source, read_into(chunks, source))
        async with asyncio.timeout(10):
            await asyncio.sleep(0.001)
            assert await asyncio.to_thread(threading.get_ident) != threading.get_ident()
            other, its_sink = os.pipe()
            ready = asyncio.Event()
            loop.add_reader(other, ready.set)
            os.write(its_sink, b"x")
            await ready.wait()
            loop.remove_reader(other)
            os.close(other)
            os.close(its_sink)
            for text in (b"one", b"two"):
                os.write(sink, text)
                assert await chunks.get() == text

    loop.run_until_complete(main())


def test_ignored_input_stays_unread_until_it_is_watched_again(
    loop: asyncio.AbstractEventLoop, selector: InputSelector, pipe: Pipe
) -> None:
    source, sink = pipe

    async def main() -> None:
        chunks: asyncio.Queue[bytes] = asyncio.Queue()
        selector.watch_input(source, read_into(chunks, source))
        selector.ignore_input()
        os.write(sink, b"later")
        await asyncio.sleep(0.001)
        assert chunks.empty()
        selector.watch_input(source, read_into(chunks, source))
        async with asyncio.timeout(10):
            assert await chunks.get() == b"later"

    loop.run_until_complete(main())


def test_an_error_in_handling_input_is_logged_and_the_next_input_is_handled(
    loop: asyncio.AbstractEventLoop, selector: InputSelector, pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    source, sink = pipe

    async def main() -> None:
        chunks: asyncio.Queue[bytes] = asyncio.Queue()

        def read_and_fail() -> None:
            read_into(chunks, source)()
            raise RuntimeError("this input cannot be handled")

        selector.watch_input(source, read_and_fail)
        async with asyncio.timeout(10):
            for text in (b"one", b"two"):
                os.write(sink, text)
                assert await chunks.get() == text

    with caplog.at_level(logging.ERROR):
        loop.run_until_complete(main())
    assert "this input cannot be handled" in caplog.text


async def test_an_event_loop_with_another_selector_serves_as_well() -> None:
    (source, its_sink), (its_source, sink) = os.pipe(), os.pipe()
    async with asyncio.timeout(10):
        serving = asyncio.create_task(serve(Server("plain", "1"), source, sink))
        os.write(its_sink, PING)
        assert await asyncio.to_thread(os.read, its_source, 1000) == PONG
        os.close(its_sink)
        await serving
    os.close(source)
    os.close(its_source)
