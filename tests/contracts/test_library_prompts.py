"""Library prompts over MCP: names, texts, lists, and isolation from files outside the library."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contracts.contract_replay import Json, ServerUnderTest
from tests.contracts.library_fixtures import (
    LibraryClient,
    Machine,
    twig_manifest,
    write_files,
    write_twig_library,
)
from tests.storage.sqlite.scripted_process import drop_privileges

PROFILES = ("twig", "all")
MIB = 1024 * 1024
SECRET = "nobody may read this"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture(params=PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


@contextmanager
def open_server(machine: Machine, profile: str = "twig", **more: Any) -> Iterator[ServerUnderTest]:
    with ServerUnderTest(machine.root, profile, env=machine.env, **more) as server:
        yield server


def text(server: ServerUnderTest, name: str, arguments: Json | None = None) -> str:
    (message,) = server.request("prompts/get", {"name": name, "arguments": arguments or {}})["messages"]
    assert message["role"] == "user"
    found: str = message["content"]["text"]
    return found


def details(server: ServerUnderTest, name: str, arguments: Json | None = None) -> str:
    error = server.error("prompts/get", {"name": name, "arguments": arguments or {}})
    found: str = error["data"]["details"]
    message = "Invalid params" if server.profile == "twig" else found
    assert (error["code"], error["message"]) == (-32602, message), error
    return found


def pages(server: ServerUnderTest) -> list[list[str]]:
    """Return the names on every page."""
    found = []
    cursor: Json = {}
    while True:
        page = server.request("prompts/list", cursor)
        found.append([prompt["name"] for prompt in page["prompts"]])
        if "nextCursor" not in page:
            return found
        cursor = {"cursor": page["nextCursor"]}


def names(server: ServerUnderTest) -> list[str]:
    (page,) = pages(server)
    return page


# Names


NAMES = {
    "My-Coding Lib": "my_coding_lib",
    "__x__": "x",
    "-- y --": "y",
    "a--b": "a__b",
    "snake_case_2": "snake_case_2",
    "v1.2": "v1_2",
    "2nd": "2nd",
    "a:b": "a_b",
    "%41": "41",
    "Ünï Çödé": "ünï_çödé",
    "日本語 プロンプト": "日本語_プロンプト",
    "ΛΌΓΟΣ": "λόγος",
    "Straße": "straße",
    "smile😀": "smile",
    "٣": "٣",
    # A letter and a combining mark.
    "ele\u0301ve": "eléve",
    "new\nline": "new_line",
    "escape\x1b[2J": "escape__2j",
    "no\xa0break": "no_break",
    "zero\u200bwidth": "zero_width",
    "\u202eturned": "turned",
    "İx": "i_x",
}


def test_library_names_are_folder_names_in_lower_case_letters_digits_and_underscores(
    machine: Machine, profile: str
) -> None:
    for folder in NAMES:
        write_twig_library(machine.libraries_of(profile) / folder, {"Key-1": f"This is {folder}"})
    with open_server(machine, profile) as server:
        assert names(server) == sorted(f"{name}:Key-1" for name in NAMES.values())
        for folder, name in NAMES.items():
            assert text(server, f"{name}:Key-1") == f"This is {folder}"


def test_a_folder_without_a_usable_name_is_not_a_library_and_is_logged(machine: Machine) -> None:
    problems = dict.fromkeys(("---", "_", "😀", "+ +"), "no letter or digit")
    problems[os.fsdecode(b"caf\xe9")] = "not valid UTF-8"
    for folder in ("good", *problems):
        write_twig_library(machine.twig_libraries / folder, {"a": "fine"})
    with LibraryClient(machine) as client:
        assert client.names() == ["good:a"]
        for folder, problem in problems.items():
            assert problem in client.wait_for_stderr(f"~/twig/{folder.partition(chr(0xDCE9))[0]}")


def test_hidden_folders_and_files_are_not_libraries(machine: Machine) -> None:
    write_twig_library(machine.twig_libraries / "good", {"a": "fine"})
    for folder in ("...", ".hidden", ".dittybag", ".git"):
        write_twig_library(machine.twig_libraries / folder, {"a": "lost"})
    write_files(machine.twig_libraries, {"twig.toml": twig_manifest("a"), "prompts.md": "lost", "notes": ""})
    with open_server(machine) as server:
        assert names(server) == ["good:a"]


def test_of_libraries_with_the_same_name_the_first_in_path_order_wins_and_the_others_are_logged(
    machine: Machine,
) -> None:
    for folder in ("my lib", "my_lib", "My-Lib", "MY LIB"):
        write_twig_library(machine.twig_libraries / folder, {"which": folder, folder.replace(" ", ""): "own"})
    with LibraryClient(machine) as client:
        assert client.names() == ["my_lib:MYLIB", "my_lib:which"]
        assert client.text("my_lib:which") == "MY LIB"
        for folder in ("my lib", "my_lib", "My-Lib"):
            assert "~/twig/MY LIB" in client.wait_for_stderr(f"~/twig/{folder}:", "'my_lib'")


def test_twig_libraries_take_precedence_over_own_libraries_with_the_same_name(machine: Machine) -> None:
    write_twig_library(machine.libraries / "a", {"which": "own"})
    write_twig_library(machine.libraries / "b", {"which": "own"})
    write_twig_library(machine.twig_libraries / "a", {"which": "foreign"})
    with open_server(machine) as server:
        assert names(server) == ["a:which", "b:which"]
        assert [text(server, "a:which"), text(server, "b:which")] == ["foreign", "own"]
    with open_server(machine, "all") as server:
        # The default profile does not read Twig's directory.
        assert [text(server, "a:which"), text(server, "b:which")] == ["own", "own"]


# Broken libraries


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _socket(file: Path) -> None:
    # The path of a socket must be short.
    with socket.socket(socket.AF_UNIX) as one, contextlib.chdir(file.parent):
        one.bind(file.name)


def _loop(file: Path) -> None:
    file.symlink_to(file)


NOT_FILES: dict[str, Callable[[Path], None]] = {
    "pipe": _pipe,
    "socket": _socket,
    "folder": Path.mkdir,
    "loop": _loop,
}


BROKEN_MANIFESTS: dict[str, tuple[str | bytes, tuple[str, ...]]] = {
    "toml": ("[prompts.a]\n\n[prompts.b\n", ("twig.toml:3", "TOML")),
    "bytes": (b"[prompts.a]\ndescription = '\xff'\n", ("twig.toml:2", "UTF-8")),
    "nul": ("[prompts.a]\n\n\0", ("twig.toml:3", "not a text")),
    "large": (f"# {'x' * MIB}\n[prompts.a]\n", ("twig.toml", "1 MiB")),
    "list": ("prompts = []\n", ("twig.toml", "[prompts.NAME]")),
    "deep": (f"{'a.' * 20_000}a = 1\n", ("twig.toml",)),
    "nested": (f"a = {'[' * 100_000}\n", ("twig.toml",)),
}


def test_broken_libraries_are_logged_with_file_and_line_and_do_not_affect_others(
    machine: Machine, profile: str
) -> None:
    directory = machine.libraries_of(profile)
    write_twig_library(directory / "a first", {"good": "first"})
    write_twig_library(directory / "z last", {"good": "last"})
    with (directory / "a first/twig.toml").open("a") as manifest:
        manifest.write("[prompts.'a/b']\n[prompts.number]\ndescription = 7\n")
    for folder, (content, _) in BROKEN_MANIFESTS.items():
        write_files(directory / folder, {"twig.toml": content, "prompts/a.md": "lost"})
    with LibraryClient(machine, profile) as client:
        assert client.names() == ["a_first:good", "z_last:good"]
        assert [client.text("a_first:good"), client.text("z_last:good")] == ["first", "last"]
        for folder, (_, words) in BROKEN_MANIFESTS.items():
            client.wait_for_stderr(f"/{folder}/", *words)
        client.wait_for_stderr("/a first/twig.toml:2: Prompt 'a/b'")
        client.wait_for_stderr("/a first/twig.toml:3: Prompt 'number'")


# Values and texts


TEXTS = {
    "no line break at the end": "end",
    "one line break": "end\n",
    "many line breaks": "\n\n  end\n\n\n",
    "crlf": "a\r\n\r\n{{ x }}\r\n{% if x %}\r\nb{% endif %}\r\n",
    "old line breaks": "a\rb\r",
    "spaces": "  a  \n\t{{ x }}\t \n   ",
    "markup": "# A <b>&amp;</b> & \"quotes\" 'too' `code` \\ \\n $x %s {x} { { x } }\n",
    "characters": "ünï 日本 😀 \u2028 \u00a0 \x0c \x1b \u200b\n",
    "nothing": "",
}


def test_texts_are_rendered_with_all_line_breaks_and_whitespace(machine: Machine, profile: str) -> None:
    write_twig_library(machine.libraries_of(profile) / "lib", TEXTS, "x")
    with open_server(machine, profile) as server:
        for key, written in TEXTS.items():
            expected = written.replace("{{ x }}", "<&>").replace("{% if x %}", "").replace("{% endif %}", "")
            assert text(server, f"lib:{key}", {"x": "<&>"}) == expected, key


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ""),
        ("5", "5"),
        (5, "5"),
        (-0.5, "-0.5"),
        (True, "true"),
        (None, ""),
        ([1, "a", None], '[1,"a",null]'),
        ({"a": {"b": "ü"}}, '{"a":{"b":"ü"}}'),
        (2**70, str(2**70)),
    ],
)
def test_values_that_are_not_text_are_rendered_as_json(
    samples: Callable[[str], ServerUnderTest], profile: str, value: object, expected: str
) -> None:
    assert text(samples(profile), "samples:value", {"x": value}) == f"[{expected}]"


@pytest.mark.parametrize(
    "value",
    [
        "{{ 7*7 }}",
        "{% include 'prompts/value.md' %}",
        "{% raw %}{{ x }}{% endraw %}",
        "{# gone? #}",
        "}} {% endif %}",
        "{{ x }}",
        "<script>&amp;\"'\\",
        "line\r\nline\n\n",
        "\u0000 \u001f \ufeff \u2028",
    ],
)
def test_argument_values_are_not_evaluated(
    samples: Callable[[str], ServerUnderTest], profile: str, value: str
) -> None:
    server = samples(profile)
    assert text(server, "samples:value", {"x": value}) == f"[{value}]"
    # They are not evaluated in included files or loops either.
    assert text(server, "samples:included", {"x": value}) == f"<[{value}]>"
    assert text(server, "samples:repeated", {"x": value}) == f"{value}|{value}|"


SAMPLES = {
    "value": "[{{ x }}]",
    "included": "<{% include './value.md' %}>",
    "repeated": "{% for i in range(2) %}{% set y = x ~ '' %}{{ y }}|{% endfor %}",
    "all": "{{ x }}{{ y }}{{ undeclared }}{{ name }}{{ arguments }}{{ undeclared.a.b }}|",
}


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], ServerUnderTest]]:
    """A server of each profile on sample prompts."""
    machine = Machine(tmp_path_factory.mktemp("samples"))
    write_twig_library(machine.libraries / "samples", SAMPLES, "x y")
    with ExitStack() as stack:
        servers = {profile: stack.enter_context(open_server(machine, profile)) for profile in PROFILES}
        yield servers.__getitem__


def test_only_declared_arguments_reach_the_template_and_others_are_ignored(
    samples: Callable[[str], ServerUnderTest], profile: str
) -> None:
    given = {"x": "1", "undeclared": "2", "name": "3", "arguments": "4", "": "5", "a b": [6], "range": "7"}
    assert text(samples(profile), "samples:all", given) == "1|"
    assert text(samples(profile), "samples:repeated", given) == "1|1|"


def test_an_empty_string_satisfies_a_required_argument(machine: Machine, profile: str) -> None:
    toml = twig_manifest("a", arguments="x y").replace('"x"\n', '"x"\nrequired = true\n')
    write_files(machine.libraries / "lib", {"twig.toml": toml, "prompts/a.md": "[{{ x }}{{ y }}]"})
    with open_server(machine, profile) as server:
        assert text(server, "lib:a", {"x": ""}) == "[]"
        assert text(server, "lib:a", {"x": "", "y": None}) == "[]"
        # Null counts as absent.
        assert details(server, "lib:a", {"x": None}) == "Missing required argument: x"
        assert details(server, "lib:a", {"y": "1"}) == "Missing required argument: x"


UNDEFINED = {
    "{{ who + 1 }}": "undefined variable 'who'",
    "{{ x }}{{ who.name.first + 1 }}": "undefined variable 'who'",
    "{{ who.greet() }}": "undefined variable 'who'",
    "{{ range(who) }}": "undefined variable 'who'",
    "{{ x }}{{ -who }}": "undefined variable 'who'",
    "{{ x.nope + 1 }}": "undefined variable 'x.nope'",
    "{{ x }} {{ who | round }}": "cannot round value (undefined); undefined variable 'who'",
    "{{ who | dictsort }}": "cannot convert value into pair list; undefined variable 'who'",
    "{% include './part.md' %}": "undefined variable 'who'",
}


def test_a_render_error_names_the_undefined_variable_and_the_line_in_the_file(
    machine: Machine, profile: str
) -> None:
    templates = {str(number): f"one\n{template}" for number, template in enumerate(UNDEFINED)}
    write_twig_library(machine.libraries / "lib", templates, "x who")
    write_files(machine.libraries / "lib", {"prompts/part.md": "a\n{{ who + 1 }}"})
    write_files(machine.libraries / "other", {"a.md": "---\narguments: [x]\n---\n\n{{ x|nope }}\n"})
    with open_server(machine, profile) as server:
        for number, problem in enumerate(UNDEFINED.values()):
            message = details(server, f"lib:{number}", {"x": "1"})
            assert message.startswith("Error rendering prompt template at line 2")
            assert message.endswith(f": {problem}")
        assert "at line 5: " in details(server, "other:a", {"x": "1"})


# Lists


DESCRIPTION = "Review code.\n\n  - kindly\n\t- with care\n"


def test_a_description_of_several_lines_is_kept_as_written(machine: Machine, profile: str) -> None:
    toml = f"[prompts.a]\ndescription = '''{DESCRIPTION}'''\n[[prompts.a.arguments]]\nname = 'x'\n"
    toml += f"description = '''{DESCRIPTION}'''\n"
    write_files(machine.libraries / "lib", {"twig.toml": toml, "prompts/a.md": "text"})
    yaml = "---\ndescription: |\n  Review code.\n\n    - kindly\n---\ntext\n"
    write_files(machine.libraries / "other", {"b.md": yaml})
    with open_server(machine, profile) as server:
        first, second = server.request("prompts/list")["prompts"]
        assert (first["description"], first["arguments"][0]["description"]) == (DESCRIPTION, DESCRIPTION)
        assert second["description"] == "Review code.\n\n  - kindly"
        assert server.request("prompts/get", {"name": "lib:a"})["description"] == DESCRIPTION


def test_prompts_are_listed_by_library_and_key(machine: Machine, profile: str) -> None:
    for folder in ("b", "a", "a_b", "B2", "Ä"):
        write_twig_library(
            machine.libraries / folder, dict.fromkeys(("z", "a", "a.b", "A", "10", "9", "ä"), "")
        )
    keys = ["10", "9", "A", "a", "a.b", "z", "ä"]
    expected = [f"{name}:{key}" for name in ("a", "a_b", "b", "b2", "ä") for key in keys]
    with open_server(machine, profile) as server:
        assert names(server) == expected


#: The number of prompts in each library, the length of each description, and the sizes of the pages.
PAGES: list[tuple[dict[str, int], int, list[int]]] = [
    ({"a": 999, "b": 2, "c": 1000, "d": 0, "e": 600}, 0, [1000, 1000, 601]),
    (dict.fromkeys("abcdefgh", 130), 900, [946, 94]),
]


@pytest.mark.parametrize(("counts", "description", "sizes"), PAGES)
def test_the_pages_contain_every_prompt_once(
    machine: Machine, profile: str, counts: dict[str, int], description: int, sizes: list[int]
) -> None:
    for folder, count in counts.items():
        lines = [f'[prompts.p{number:03}]\ndescription = "{"ü" * description}"\n' for number in range(count)]
        write_files(machine.libraries / folder, {"twig.toml": "".join(lines)})
    with open_server(machine, profile) as server:
        found = pages(server)
    expected = [f"{folder}:p{number:03}" for folder, count in counts.items() for number in range(count)]
    assert list(chain.from_iterable(found)) == expected
    assert [len(page) for page in found] == sizes


def test_the_default_profile_lists_stored_prompts_first_and_library_prompts_on_the_same_pages(
    machine: Machine,
) -> None:
    write_twig_library(
        machine.libraries / "lib", dict.fromkeys((f"p{number:03}" for number in range(700)), "y")
    )
    library = [f"lib:p{number:03}" for number in range(700)]
    stored: list[str] = []
    with open_server(machine, "all") as server:
        for count, lengths in {1: [701], 999: [1000, 699], 1000: [1000, 700], 1001: [1000, 701]}.items():
            while len(stored) < count:
                stored.append(f"zz-{9999 - len(stored)}")
                server.text("create_prompt", name=stored[-1], content="x")
            found = pages(server)
            assert [len(page) for page in found] == lengths
            assert list(chain.from_iterable(found)) == stored + library
        assert [text(server, stored[0]), text(server, "lib:p000")] == ["x", "y"]


def test_a_cursor_remains_valid_when_its_library_is_removed(machine: Machine, profile: str) -> None:
    for folder in ("a", "b", "c"):
        write_files(
            machine.libraries / folder,
            {"twig.toml": twig_manifest(*(f"p{number:03}" for number in range(500)))},
        )
    with LibraryClient(machine, profile) as client:
        first = client.ask("prompts/list")["result"]
        assert first["prompts"][-1]["name"] == "b:p499"
        (machine.libraries / "b/twig.toml").unlink()
        client.wait_for_notification(1.5)
        rest = client.ask("prompts/list", {"cursor": first["nextCursor"]})["result"]
    assert [prompt["name"] for prompt in rest["prompts"]] == [f"c:p{number:03}" for number in range(500)]


# Other formats


FORMATS: dict[str, tuple[dict[str, str | bytes], str, Json, str]] = {
    "markdown": (
        {"git/review.md": "---\ntitle: T\ndescription: D\narguments: [what]\n---\nReview {{ what }}!\n"},
        "git.review",
        {"what": "{{ it }}"},
        "Review {{ it }}!\n",
    ),
    "plain": ({"plain.md": "Nothing {{ here }} is filled in.\n"}, "plain", {}, ""),
    "claude-command": (
        {".claude/commands/fix.md": "---\nargument-hint: [issue]\n---\nFix $1: {{ x }}, $ARGUMENTS\n"},
        "fix",
        {"issue": "42", "arguments": "all"},
        "Fix 42: {{ x }}, all\n",
    ),
    "skill": (
        {
            "skills/pdf/SKILL.md": "---\nname: PDF\ndescription: D\n---\nUse {{ pdf }}.\n",
            "skills/pdf/more.md": "not a prompt",
        },
        "pdf",
        {},
        "Use {{ pdf }}.\n",
    ),
    "fabric": (
        {"patterns/sum/system.md": "# IDENTITY\n\nSum up in {{lang}}.\n"},
        "sum",
        {"lang": "Go", "input": "<{{ x }}>"},
        "# IDENTITY\n\nSum up in Go.\n\n<{{ x }}>",
    ),
    "prompty": (
        {"p.prompty": "---\nname: P\ninputs:\n  who:\n    type: string\n---\nuser:\nHi {{who}}\n"},
        "p",
        {"who": "{{ you }}"},
        "user:\nHi {{ you }}\n",
    ),
    "llm-template": (
        {"t.yaml": "system: Be $mood.\nprompt: 'Say $input for $$1'\ndefaults:\n  mood: kind\n"},
        "t",
        {"input": "$mood {{ x }}"},
        "Be kind.\n\nSay $mood {{ x }} for $1",
    ),
}


def test_prompts_of_every_format_are_listed_and_rendered(machine: Machine, profile: str) -> None:
    for folder, (files, *_) in FORMATS.items():
        write_files(machine.libraries_of(profile) / folder, files)
    with open_server(machine, profile) as server:
        listed = {prompt["name"]: prompt for prompt in server.request("prompts/list")["prompts"]}
        assert len(listed) == len(FORMATS)
        for folder, (files, key, arguments, expected) in FORMATS.items():
            name = f"{folder.replace('-', '_')}:{key}"
            declared = [argument["name"] for argument in listed[name]["arguments"]]
            assert set(declared) >= arguments.keys()
            assert listed[name]["description"]
            if profile == "twig":
                assert list(listed[name]["inputSchema"]["properties"]) == declared
            else:
                assert "inputSchema" not in listed[name]
            # Agreed: our own profiles hand out the messages of a prompt with roles.
            whole = "Hi {{ you }}" if (profile, folder) == ("all", "prompty") else expected
            assert text(server, name, arguments) == (whole or next(iter(files.values()))), name


# Completion


def test_the_arguments_of_a_library_prompt_are_completed(machine: Machine) -> None:
    content = "---\narguments:\n  - {name: language, choices: [Python, PHP, Go]}\n---\n{{ language }}\n"
    write_files(machine.libraries / "lib", {"a.md": content})
    with open_server(machine, "all") as server:

        def request(name: str, argument: str) -> Json:
            ref = {"type": "ref/prompt", "name": name}
            return {"ref": ref, "argument": {"name": argument, "value": "p"}}

        completion = server.request("completion/complete", request("lib:a", "language"))["completion"]
        assert completion["values"] == ["Python", "PHP"]
        for name, argument, problem in (
            ("lib:a", "nope", "Prompt 'lib:a' has no argument 'nope'"),
            ("lib:b", "code", "Prompt 'lib:b' not found"),
            ("bil:a", "code", "Prompt 'bil:a' not found"),
        ):
            error = server.error("completion/complete", request(name, argument))
            assert error == {"code": -32602, "message": problem}


# Includes


INCLUDES = {
    "{% include 'part.md' %}": "part\n",
    "{% include 'parts/deep/one.md' %}": "<two\n>\n",
    "{% include './beside.md' %}": "beside\n",
    "{% include '../part.md' %}": "part\n",
    "{% include 'prompts/beside.md' %}": "beside\n",
    "{% include ['nope.md', 'part.md'] %}": "part\n",
    "{% include 'nope.md' ignore missing %}": "",
    "{% include 'link.md' %}": "part\n",
    "{% include 'linked/deep/two.md' %}": "two\n",
    "{% include 'absolute.md' %}": "part\n",
    "{% include 'with space ü.txt' %}": "odd\n",
    "{% from 'macros.txt' import twice %}{{ twice(x) }}": "ii",
    "{% import 'macros.txt' as m %}{{ m.twice(x) }}": "ii",
    "{% extends 'frame.txt' %}{% block body %}{{ x }}{% endblock %}": "[i]\n",
    "{% include 'value.txt' %}": "i\n",
}


def library_with_parts(machine: Machine, texts: dict[str, str | bytes]) -> Path:
    """Write a library with files that prompts can include."""
    folder = write_twig_library(machine.libraries / "lib", texts, "x")
    write_files(
        folder,
        {
            "part.md": "part\n",
            "prompts/beside.md": "beside\n",
            "parts/deep/one.md": "<{% include './two.md' %}>\n",
            "parts/deep/two.md": "two\n",
            "with space ü.txt": "odd\n",
            "macros.txt": "{% macro twice(y) %}{{ y }}{{ y }}{% endmacro %}",
            "frame.txt": "[{% block body %}{% endblock %}]\n",
            "value.txt": "{{ x }}\n",
        },
    )
    (folder / "link.md").symlink_to("part.md")
    (folder / "linked").symlink_to("parts")
    (folder / "absolute.md").symlink_to(folder / "part.md")
    return folder


def test_templates_include_files_of_their_library(machine: Machine) -> None:
    library_with_parts(machine, {str(number): one for number, one in enumerate(INCLUDES)})
    with open_server(machine) as server:
        for number, (template, expected) in enumerate(INCLUDES.items()):
            assert text(server, f"lib:{number}", {"x": "i"}) == expected, template


FAILING_INCLUDES = {
    "\n{% include 'nope.md' %}": "at line 2",
    "{% include 'prompts' %}": "included file 'prompts'",
    "{% include 'prompts/2.md' %}": "at line 1",
    "{% include 'broken.md' %}": "at line 3 of broken.md",
    "{% for i in range(60) %}{% include 'many/' ~ i %}{% endfor %}": "50 files",
    "{% include 'large.md' %}": "1 MiB",
    "{% include 'bytes.md' %}": "UTF-8",
    "{% include 'pipe' %}": "not a regular file",
    "{% include '../../outside.md' %}": "outside the library",
    "{% include x %}": "outside the library",
}


def test_a_failing_include_is_an_error_with_the_reason(machine: Machine) -> None:
    folder = library_with_parts(machine, {str(number): one for number, one in enumerate(FAILING_INCLUDES)})
    write_files(folder, {f"many/{number}": "" for number in range(60)})
    write_files(folder, {"broken.md": "\n\n{% if %}", "large.md": "x" * (MIB + 1), "bytes.md": b"\xff"})
    _pipe(folder / "pipe")
    with open_server(machine) as server:
        for number, problem in enumerate(FAILING_INCLUDES.values()):
            message = details(server, f"lib:{number}", {"x": "../../outside.md"})
            assert message.startswith("Error rendering prompt template")
            assert problem in message


# Isolation


#: Names that lead out of the library; OUTSIDE is replaced with the path of a file outside.
ESCAPES = [
    "../outside.md",
    "../../outside.md",
    "./../../outside.md",
    "prompts/../../outside.md",
    "parts/../../lib-secret/secret.md",
    "../../lib-secret/secret.md",
    "OUTSIDE",
    "file:OUTSIDE",
    "/etc/passwd",
    "/proc/self/environ",
    "..%2foutside.md",
    "",
    "..",
    "link-to-file.md",
    "link-to-folder/outside.md",
    "link-to-sibling/secret.md",
    "link-up/outside.md",
    "link-to-link.md",
    "link-to-etc/passwd",
    "prompts/link-to-file.md",
]


def library_with_escapes(machine: Machine, texts: dict[str, str | bytes]) -> Path:
    """Write a library with links to secret files outside of it."""
    folder = write_twig_library(machine.libraries / "lib", texts, "x")
    write_files(machine.libraries, {"outside.md": SECRET, "lib-secret/secret.md": SECRET})
    write_files(machine.home, {"outside.md": SECRET})
    write_files(machine.root, {"outside.md": SECRET})
    write_files(folder, {"part.md": "inside"})
    links: dict[str, Path | str] = {
        "link-to-file.md": machine.libraries / "outside.md",
        "link-to-folder": machine.home,
        "link-to-sibling": machine.libraries / "lib-secret",
        "link-up": "..",
        "link-to-link.md": "link-to-file.md",
        "link-to-etc": "/etc",
        "prompts/link-to-file.md": "../../outside.md",
    }
    for name, target in links.items():
        (folder / name).symlink_to(target)
    return folder


def assert_nothing_leaked(response: Json) -> None:
    message = msgspec.json.encode(response).decode()
    for secret in (SECRET, "root:", "DITTYBAG_HOME", "PATH="):
        assert secret not in message


def test_includes_cannot_leave_the_library(machine: Machine) -> None:
    library_with_escapes(machine, {"p": "{% include x %}", "q": "{% include x ignore missing %}|"})
    with open_server(machine) as server:
        for name in ESCAPES:
            x = name.replace("OUTSIDE", str(machine.root / "outside.md"))
            for key in "pq":
                params = {"name": f"lib:{key}", "arguments": {"x": x}}
                response = server.ask({"method": "prompts/get", "params": params})
                assert_nothing_leaked(response)
                assert key == "q" or response["error"]["code"] == -32602, name
        # The file itself can be included; only those paths lead out.
        assert text(server, "lib:p", {"x": "part.md"}) == "inside"


def test_links_to_prompt_files_and_folders_cannot_leave_the_library(machine: Machine, profile: str) -> None:
    targets: dict[str, Path | str] = {
        "file": machine.root / "outside.md",
        "sibling": "../../lib-secret/secret.md",
        "passwd": "/etc/passwd",
        "environ": "/proc/self/environ",
        "nowhere": "nowhere.md",
        "itself": "itself.md",
    }
    folder = library_with_escapes(machine, {"good": "fine"})
    write_files(folder, {"twig.toml": twig_manifest("good", *targets)})
    for key, target in targets.items():
        (folder / f"prompts/{key}.md").symlink_to(target)
    write_files(machine.root / "elsewhere", {"a.md": SECRET})
    write_files(machine.libraries / "other", {"twig.toml": twig_manifest("a")})
    (machine.libraries / "other/prompts").symlink_to(machine.root / "elsewhere")
    with open_server(machine, profile) as server:
        for name in (*(f"lib:{key}" for key in targets), "other:a"):
            response = server.ask({"method": "prompts/get", "params": {"name": name}})
            assert_nothing_leaked(response)
            assert response["error"]["code"] == -32602
        assert text(server, "lib:good") == "fine"


def test_links_to_prompts_outside_are_not_listed(machine: Machine, profile: str) -> None:
    folder = write_files(machine.libraries / "lib", {"good.md": "fine"})
    write_files(machine.root / "elsewhere", {"bad.md": SECRET, "twig.toml": twig_manifest("bad")})
    (folder / "bad.md").symlink_to(machine.root / "elsewhere/bad.md")
    (folder / "more").symlink_to(machine.root / "elsewhere")
    (folder / "environ.md").symlink_to("/proc/self/environ")
    (folder / "twig.toml").symlink_to(machine.root / "elsewhere/twig.toml")
    with open_server(machine, profile) as server:
        assert names(server) == ["lib:good"]
        assert text(server, "lib:good") == "fine"


def test_a_link_to_the_root_directory_does_not_delay_responses(machine: Machine) -> None:
    folder = write_twig_library(machine.libraries / "lib", {"a": "fine"})
    (folder / "disk").symlink_to("/")
    with LibraryClient(machine) as client:
        assert client.names() == ["lib:a"]
        for _ in range(100):
            # A server that follows the link takes longer.
            assert client.text("lib:a", seconds=1.0) == "fine"


def test_a_library_can_be_a_link(machine: Machine) -> None:
    write_twig_library(machine.root / "elsewhere", {"a": "{% include 'part.md' %}{% include '../part.md' %}"})
    write_files(machine.root / "elsewhere", {"part.md": "inside"})
    write_files(machine.root, {"part.md": SECRET})
    machine.twig_libraries.mkdir()
    (machine.twig_libraries / "linked").symlink_to(machine.root / "elsewhere")
    with open_server(machine) as server:
        assert text(server, "linked:a") == "insideinside"


# Invalid files


def test_a_file_that_is_not_a_regular_file_does_not_affect_other_prompts(
    machine: Machine, profile: str
) -> None:
    folder = write_twig_library(machine.libraries / "lib", {"good": "fine"})
    write_files(folder, {"twig.toml": twig_manifest("good", *NOT_FILES)})
    markdown = write_files(machine.libraries / "markdown", {"good.md": "fine"})
    for key, make in NOT_FILES.items():
        (machine.libraries / key).mkdir()
        for file in (
            folder / f"prompts/{key}.md",
            markdown / f"{key}.md",
            machine.libraries / key / "twig.toml",
        ):
            make(file)
    with open_server(machine, profile) as server:
        assert names(server) == [*sorted(f"lib:{key}" for key in ("good", *NOT_FILES)), "markdown:good"]
        for key in NOT_FILES:
            assert f"prompts/{key}.md" in details(server, f"lib:{key}")
            assert text(server, "lib:good") == text(server, "markdown:good") == "fine"


LIMITS: dict[str, tuple[bytes, str | None]] = {
    "1 MiB": (b"x" * MIB, None),
    "one more": (b"x" * (MIB + 1), "larger than 1 MiB"),
    "1 MiB of ü": ("ü".encode() * (MIB // 2), None),
    "one more ü": ("ü".encode() * (MIB // 2) + b"x", "larger than 1 MiB"),
    "not UTF-8": (b"one\ntwo \xff\n", "UTF-8"),
    "surrogate": (b"\xed\xa0\x80", "UTF-8"),
    "nul": (b"one\ntwo\n\0", "not a text"),
}


def test_an_unreadable_file_is_an_error_with_the_reason_for_its_prompt_only(
    machine: Machine, profile: str
) -> None:
    write_twig_library(machine.libraries / "lib", {key: content for key, (content, _) in LIMITS.items()})
    with open_server(machine, profile) as server:
        assert set(names(server)) == {f"lib:{key}" for key in LIMITS}
        for key, (content, problem) in LIMITS.items():
            if problem is None:
                assert text(server, f"lib:{key}") == content.decode()
            else:
                message = details(server, f"lib:{key}")
                assert problem in message
                assert f"prompts/{key}.md" in message
        assert "line 2" in details(server, "lib:not UTF-8")
        assert "line 3" in details(server, "lib:nul")


def test_an_unreadable_markdown_file_is_logged_and_is_not_a_prompt(machine: Machine) -> None:
    files = LIMITS
    write_files(machine.libraries / "lib", {f"{key}.md": content for key, (content, _) in files.items()})
    with LibraryClient(machine) as client:
        good = [key for key, (_, problem) in files.items() if problem is None]
        assert client.names() == sorted(f"lib:{key}" for key in good)
        for key in good:
            assert client.text(f"lib:{key}") == files[key][0].decode()
        for key, (_, problem) in files.items():
            if problem is not None:
                client.wait_for_stderr(f"/lib/{key}.md", problem)
        client.wait_for_stderr("/lib/not UTF-8.md:2")


def test_an_unreadable_folder_is_logged_and_does_not_affect_others(machine: Machine) -> None:
    write_files(machine.twig_libraries / "good", {"a.md": "fine"})
    secret = write_files(machine.twig_libraries / "secret", {"a.md": "x"})
    part = write_twig_library(machine.twig_libraries / "part", {"a": "x"})
    write_twig_library(machine.libraries / "own", {"a": "own"})
    (machine.twig_libraries / "gone").symlink_to(machine.root / "nowhere")
    (machine.twig_libraries / "loop").symlink_to(machine.twig_libraries / "loop")
    secret.chmod(0)
    (part / "prompts").chmod(0)
    with LibraryClient(machine, prefix=drop_privileges()) as client:
        assert client.names() == ["good:a", "own:a", "part:a"]
        client.wait_for_stderr("~/twig/secret: this folder cannot be read: permission denied")
        client.wait_for_stderr("~/twig/part/prompts: cannot be read: permission denied")
        client.wait_for_stderr("~/twig/gone: a link to a folder that does not exist")
        client.wait_for_stderr("~/twig/loop: cannot read this folder: ")
        assert "permission denied" in client.details("part:a")


def test_an_unreadable_directory_of_libraries_is_logged(machine: Machine) -> None:
    write_twig_library(machine.libraries / "own", {"a": "own"})
    write_twig_library(machine.twig_libraries / "lib", {"a": "x"})
    machine.twig_libraries.chmod(0)
    with LibraryClient(machine, prefix=drop_privileges()) as client:
        assert client.names() == ["own:a"]
        client.wait_for_stderr("~/twig: cannot read this directory of libraries: permission denied")


def test_a_hard_link_is_not_read(machine: Machine, profile: str) -> None:
    outside = write_files(machine.root / "outside", {"secret.md": SECRET}) / "secret.md"
    folder = write_twig_library(machine.libraries / "lib", {"good": "{% include 'part.md' %}", "link": "x"})
    other = write_files(machine.libraries / "other", {"good.md": "fine"})
    write_files(machine.libraries / "third", {"prompts/a.md": SECRET})
    (folder / "prompts/link.md").unlink()
    for link in (folder / "prompts/link.md", folder / "part.md", other / "link.md"):
        link.hardlink_to(outside)
    outside_manifest = write_files(machine.root / "outside", {"twig.toml": twig_manifest("a")}) / "twig.toml"
    (machine.libraries / "third/twig.toml").hardlink_to(outside_manifest)
    with open_server(machine, profile) as server:
        assert names(server) == ["lib:good", "lib:link", "other:good"]
        for name in ("lib:good", "lib:link"):
            assert "a hard link: the file has another name elsewhere" in details(server, name)
        # Without its other name it is a file like any other.
        outside.unlink()
        (other / "link.md").unlink()
        (folder / "part.md").unlink()
    with open_server(machine, profile) as server:
        assert text(server, "lib:link") == SECRET


def test_a_byte_order_mark_is_not_part_of_the_text(machine: Machine, profile: str) -> None:
    mark = b"\xef\xbb\xbf"
    write_twig_library(
        machine.libraries / "lib", {"a": mark + b"text \xef\xbb\xbf\n", "b": b"{% include 'part' %}"}
    )
    write_files(machine.libraries / "lib", {"part": mark + b"part"})
    toml = (machine.libraries / "lib/twig.toml").read_bytes()
    write_files(machine.libraries / "lib", {"twig.toml": mark + toml})
    write_files(machine.libraries / "other", {"c.md": mark + b"---\ntitle: T\n---\ntext"})
    with open_server(machine, profile) as server:
        assert text(server, "lib:a") == "text \ufeff\n"
        assert text(server, "lib:b") == "part"
        assert text(server, "other:c") == "text"
