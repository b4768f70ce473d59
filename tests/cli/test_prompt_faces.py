"""A prompt reaches the model unchanged on every face, or its face says what differs."""

from __future__ import annotations

import random
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from dittybag.clients.native_reading import model_text, typed_arguments
from dittybag.clients.publishing_targets import TARGETS
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


def test_every_face_hands_out_the_same_text_or_says_what_differs(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
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
    listed = {target: publish_all(home, work, samples, target, texts) for target in TARGETS}
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
            elif face == "skill":
                assert text.endswith(sample.content)
                assert sample.values or roles, sample
            else:
                assert listed[face][sample.name], (sample, face, text, rendered)
                assert face == "cursor" or roles or sample.values, (sample, face)
    # Plain prompts are equal wherever the client has a place for the header.
    for face in ("prompt", "tool", "skill", *TARGETS):
        assert face == "cursor" or equal[face] >= len(samples) // 8, equal


def publish_all(
    home: Path, work: Path, samples: list[Sample], target: str, texts: dict[str, dict[str, str]]
) -> dict[str, list[str]]:
    """Publish prompts for a client and add what its model gets; return the differences that are listed."""
    names = [sample.name for sample in samples]
    # The first sample has a statement, which files of these clients cannot run.
    status = 1 if target in ("claude-code", "gemini", "vscode") else 0
    options = ("--to", target, "-C", str(work), "--json")
    done = data(dittybag(home, "publish", *names, *options, status=status))
    published = {item["name"]: item for item in done["published"]}
    assert ("p0" in published) == (status == 0)
    for sample in samples:
        if sample.name not in published:
            continue
        file = Path(published[sample.name]["files"][0]["file"]).read_bytes().decode()
        if target == "agents-md":
            file = file.partition(f"begin {sample.name}. ")[2].partition(" -->\n")[2]
            file = file.partition(f"\n<!-- dittybag:end {sample.name} -->")[0]
        is_typed = target == "claude-code" or (target == "gemini" and "{{args}}" in file)
        typed = typed_arguments(target, tuple(sample.values), sample.values) if is_typed else ""
        texts[sample.name][target] = model_text(target, file, typed, sample.values, sample.name)
    return {name: item["differences"] for name, item in published.items()}
