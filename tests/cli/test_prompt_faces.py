"""A prompt reaches the model unchanged on every face."""

from __future__ import annotations

import random
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from tests.cli.cli_runner import data, dittybag
from tests.repetitions import SEED, repetitions
from tests.stdio_server_process import StdioServerProcess

PIECES: Final = (
    "Review this",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    "\ttab",
    '"quoted"',
    '"""',
    "'''",
    "\\",
    "back\\slash",
    "$5.00",
    "$HOME",
    "$ARGUMENTS",
    "---\n",
    "# heading",
    "<!-- comment -->",
    "é 日本語 👩\u200d👧",
    "\u2028",
    "{ single }",
    "@user",
    "!",
    "100 %",
)
NAMES: Final = ("error", "language", "file_name")


class Sample(Struct, frozen=True):
    name: str
    content: str
    values: dict[str, str]


def make_samples(count: int) -> list[Sample]:
    chance = random.Random(SEED)
    samples = [Sample("p0", "{% if error %}{{ error }}{% endif %}", {"error": "x"})]
    for number in range(1, count):
        names = chance.sample(NAMES, chance.choice((0, 0, 1, 1, 2, 3)))
        parts = chance.choices(PIECES, k=chance.randrange(1, 12)) + [f"{{{{ {name} }}}}" for name in names]
        chance.shuffle(parts)
        content = "".join(parts).strip() or "text"
        if chance.random() < 0.15:
            content = f"--role system\nBe brief.\n\n--role user\n{content}"
        if names and chance.random() < 0.15:
            content += f"{{% if {names[0]} %}}yes{{% endif %}}"
        values = {name: chance.choice(("plain", "two words", 'a "quoted" $1', "日本")) for name in names}
        samples.append(Sample(f"p{number}", content, values))
    return samples


class _Agent:
    """A client of the profile `agent` over stdio."""

    def __init__(self, server: StdioServerProcess) -> None:
        self._server = server
        self._last = 0
        server.handshake()

    def request(self, method: str, **params: Any) -> Any:
        self._last += 1
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._server.send(msgspec.json.encode(message))
        while (answer := self._server.message()).get("id") != self._last:
            assert answer["method"].startswith("notifications/"), answer
        return answer["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        result = self.request("tools/call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        return result["structuredContent"]


def joined(messages: list[tuple[str, str]]) -> str:
    """Return messages as `prompt render` prints them."""
    if len(messages) == 1:
        return messages[0][1]
    return "\n\n".join(f"--role {role}\n{text}" for role, text in messages)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_every_face_hands_out_the_same_text(tmp_path: Path) -> None:
    home = tmp_path / "home"
    samples = make_samples(repetitions(16, 300))
    texts: dict[str, dict[str, str]] = {sample.name: {} for sample in samples}
    with StdioServerProcess(
        "dittybag", "serve", "--profile", "agent", env={"DITTYBAG_HOME": str(home)}
    ) as server:
        agent = _Agent(server)
        for sample in samples:
            declared = [{"name": name, "required": True} for name in sample.values]
            options: dict[str, Any] = {"arguments": declared} if declared else {"verbatim": True}
            agent.call("save_prompt", name=sample.name, content=sample.content, **options)
            got = agent.request("prompts/get", name=sample.name, arguments=sample.values)["messages"]
            own = texts[sample.name]
            own["prompt"] = joined([(message["role"], message["content"]["text"]) for message in got])
            used = agent.call("use_prompt", ref=f"prompt:{sample.name}", arguments=sample.values)["messages"]
            own["tool"] = joined([(message["role"], message["text"]) for message in used])
            (file,) = agent.request("resources/read", uri=f"skill://stored-prompts/{sample.name}/SKILL.md")[
                "contents"
            ]
            own["skill"] = file["text"].split("---\n", 2)[2].removeprefix("\n")
    equal: Counter[str] = Counter()
    for sample in samples:
        rendered = data(
            dittybag(
                home,
                "prompt",
                "render",
                sample.name,
                *(f"{k}={v}" for k, v in sample.values.items()),
                "--json",
            )
        )["text"]
        roles = sample.content.startswith("--role")
        for face, text in texts[sample.name].items():
            if digest(text) == digest(rendered):
                equal[face] += 1
            elif face in ("prompt", "tool"):
                # MCP has no role for system messages.
                assert text == rendered.replace("--role system\n", "--role user\n", 1), (sample, face)
            else:
                assert text.endswith(sample.content)
                assert sample.values or roles, sample
    for face in ("prompt", "tool", "skill"):
        assert equal[face] >= len(samples) // 8, equal
