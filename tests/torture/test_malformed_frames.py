"""Ten thousand malformed frames: no crash, no hang, every readable id answered once."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from tests.torture.malformed import MalformedFrames, readable_id
from tests.wire import Wire

FRAMES = 10_000


def probe(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": str(number)}}
    message = {"jsonrpc": "2.0", "id": f"probe-{number}", "method": "tools/call", "params": params}
    return msgspec.json.encode(message)


@pytest.mark.parametrize("version", ["2025-03-26", "2025-11-25"])
def test_malformed_frames_are_survived_and_answered(version: str) -> None:
    frames = MalformedFrames(seed=20261115)
    chance = random.Random(1)
    answered_readable = errors = 0
    with Wire("tests.torture.everything_goes") as wire:
        wire.handshake(version)
        memory = 0
        for number in range(FRAMES):
            frame = frames.next()
            pieces = frame + b"\n" + probe(number) + b"\n"
            cut = chance.randrange(len(pieces)) if chance.random() < 0.2 else len(pieces)
            wire.write(pieces[:cut])
            wire.write(pieces[cut:])
            answers: list[Any] = []
            while True:
                message = wire.message()
                if isinstance(message, dict) and message.get("id") == f"probe-{number}":
                    break
                answers.append(message)
            assert message["result"]["content"][0]["text"] == str(number), frame
            # A mutated frame may have opened the session anew, in another revision or with other levels.
            replies: list[Any] = [one for one in answers if isinstance(one, list) or "method" not in one]
            assert len(replies) <= 1, (frame, replies)
            expected = readable_id(frame)
            if expected is not None:
                listening = any(isinstance(one, dict) and one.get("method") for one in answers)
                assert replies or listening, f"no answer: {frame[:500]!r}"
                if replies:
                    assert replies[0]["id"] == expected, (frame, replies)
                answered_readable += 1
            errors += sum(isinstance(one, dict) and "error" in one for one in replies)
            if number == FRAMES // 2:
                memory = wire.resident_kilobytes()
        assert wire.resident_kilobytes() - memory < 16 * 1024
        wire.hang_up()
        _, stderr, status = wire.rest()
    assert status == 0
    assert "Fatal" not in stderr
    assert answered_readable > FRAMES / 3, "the frames should not all be noise"
    assert errors > FRAMES / 3, "the frames should not all be fine"
