"""Prints the completions of a command line for the scripts of the shells."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete

from dittybag.cli.name_completion import Completer, completer_for
from dittybag.domain.text import one_line

#: Descriptions are cut to this length.
_ABOUT_LENGTH: Final = 60
#: The value of bash's COMP_TYPE if completions are only listed, so that descriptions are not inserted.
_LISTED: Final = "63"
_KINDS: Final = {"file": "files", "dir": "folders"}


def print_completions(root: click.Group, shell: str, arguments: Sequence[str]) -> int:
    """Print the completions that the script of a shell asks for, and return the exit status.

    The first line says what completes the word: `names`, which follow, `files` or `folders`.
    """
    try:
        lines = _SHELLS[shell](root, arguments[1:])
    except Exception:  # noqa: BLE001  # an error message would garble the line being typed
        return 1
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def complete(root: click.Group, words: Sequence[str], current: str) -> list[CompletionItem]:
    """Return the completions of the word `current` after `words`. Each is a whole word."""
    _add_completers(root, words)
    found = ShellComplete(root, {}, "dittybag", "").get_completions(list(words), current)
    name, equals, _ = current.partition("=")
    # Click returns the values of `--option=value` without the option.
    if not (equals and name.startswith("-")):
        return found
    return [CompletionItem(f"{name}={item.value}", item.type, item.help) for item in found]


def _add_completers(root: click.Group, words: Sequence[str]) -> None:
    """Let the parameters of the command of a line complete to stored names."""
    command: click.Command = root
    path: list[str] = []
    ctx = click.Context(root, info_name="dittybag", resilient_parsing=True)
    for word in words:
        if not isinstance(command, click.Group):
            break
        if word.startswith("-"):
            continue
        _, found, _ = command.resolve_command(ctx, [word])
        if found is None:
            break
        command = found
        path.append(found.name or word)
    for parameter in command.params:
        completer = completer_for(" ".join(path), parameter.name or "")
        if completer is not None:
            parameter.shell_complete = _without_given(completer, parameter)  # type: ignore[method-assign, assignment]


def _without_given(completer: Completer, parameter: click.Parameter) -> Completer:
    """Leave out what was already given for a parameter with several values."""

    def complete(ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        given = ctx.params.get(parameter.name or "")
        words = {str(value) for value in given} if isinstance(given, tuple) else set()
        return [item for item in completer(ctx, incomplete) if item.value not in words]

    return complete


def _print_for(
    found: Sequence[CompletionItem], print_item: Callable[[CompletionItem], Sequence[str]]
) -> list[str]:
    for item in found:
        if item.type in _KINDS:
            return [_KINDS[item.type]]
    return ["names", *(line for item in found for line in print_item(item))]


def _about(item: CompletionItem) -> str:
    return one_line(item.help or "", _ABOUT_LENGTH)


def _bash(root: click.Group, arguments: Sequence[str]) -> list[str]:
    from dittybag.cli.bash_words import parse_bash_line

    text, breaks, kind = arguments
    line = parse_bash_line(text, breaks)
    found = complete(root, line.words[1:], line.current)
    if kind != _LISTED:
        return _print_for(found, lambda item: [line.reply(item.value)])
    width = max((len(item.value) for item in found), default=0) - line.kept
    return _print_for(
        found,
        lambda item: [
            f"{item.value[line.kept :]:{width}}  ({about})"
            if (about := _about(item))
            else item.value[line.kept :]
        ],
    )


def _zsh(root: click.Group, arguments: Sequence[str]) -> list[str]:
    *words, current = arguments
    return _print_for(complete(root, words, current), lambda item: [item.value, _about(item)])


def _fish(root: click.Group, arguments: Sequence[str]) -> list[str]:
    from dittybag.cli.bash_words import parse_bash_line

    _, *words, raw = arguments
    current = parse_bash_line(raw, "").current
    return _print_for(
        complete(root, words, current), lambda item: [f"{item.value}\t{_about(item)}".rstrip("\t")]
    )


_SHELLS: Final = {"bash": _bash, "zsh": _zsh, "fish": _fish}
