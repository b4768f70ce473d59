"""Thousands of malformed frames: no crash, no hang, every readable id is answered once."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tests.repetitions import SEED, repetitions
from tests.stdio_server_process import StdioServerProcess
from tests.torture.malformed_frames import MalformedFrames, readable_id

FRAMES = repetitions(4_000, 100_000)


def probe(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": str(number)}}
    message = {"jsonrpc": "2.0", "id": f"probe-{number}", "method": "tools/call", "params": params}
    return msgspec.json.encode(message)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
def test_the_server_survives_and_answers_malformed_frames(version: str) -> None:
    frames = MalformedFrames(seed=SEED)
    rng = random.Random(1)
    answered_readable = errors = 0
    with StdioServerProcess("tests.torture.engine_stdio_server") as wire:
        wire.handshake(version)
        memory = 0
        for number in range(FRAMES):
            frame = frames.next()
            pieces = frame + b"\n" + probe(number) + b"\n"
            cut = rng.randrange(len(pieces)) if rng.random() < 0.2 else len(pieces)
            wire.write(pieces[:cut])
            wire.write(pieces[cut:])
            messages: list[Any] = []
            while True:
                message = wire.message()
                if isinstance(message, dict) and message.get("id") == f"probe-{number}":
                    break
                messages.append(message)
            assert message["result"]["content"][0]["text"] == str(number), frame
            # A mutated frame may have reopened the session with another revision or log level.
            replies: list[Any] = [each for each in messages if isinstance(each, list) or "method" not in each]
            assert len(replies) <= 1, (frame, replies)
            expected = readable_id(frame)
            if expected is not None:
                listening = any(isinstance(each, dict) and each.get("method") for each in messages)
                assert replies or listening, f"no response: {frame[:500]!r}"
                if replies:
                    assert replies[0]["id"] == expected, (frame, replies)
                answered_readable += 1
            errors += sum(isinstance(reply, dict) and "error" in reply for reply in replies)
            if number == FRAMES // 2:
                memory = wire.resident_kilobytes()
        assert wire.resident_kilobytes() - memory < 16 * 1024
        wire.hang_up()
        _, stderr, status = wire.rest()
    assert status == 0
    assert "Fatal" not in stderr
    assert answered_readable > FRAMES / 3, "too few frames with a readable id"
    assert errors > FRAMES / 3, "too few invalid frames"
