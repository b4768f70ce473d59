"""The output of a hook in the form that a client reads."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import msgspec

#: Plain text, JSON with `hookSpecificOutput` (Claude Code, Codex, Gemini CLI, VS Code), or Cursor's JSON.
HookOutput = Literal["text", "hook", "cursor"]
HOOK_OUTPUTS: Final[tuple[HookOutput, ...]] = get_args(HookOutput)


def hook_output(text: str, output: HookOutput) -> str:
    """Return what a hook prints so that the client adds a text to the conversation; nothing for no text."""
    if output == "text" or not text:
        return text
    data: Any = {"additional_context": text}
    if output == "hook":
        data = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}}
    return msgspec.json.encode(data).decode()
