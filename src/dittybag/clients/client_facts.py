"""What each client does with prompts, resources, skills and files: facts, each with its source.

A fact that could not be looked up is `unknown`. The reference page about clients is made from this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

Support = Literal["yes", "partly", "no", "unknown"]
LimitUnit = Literal["tokens", "characters", "bytes", "tools"]


class Source(Struct, frozen=True):
    """Where a fact was found."""

    url: str
    #: The day on which it was looked up.
    looked_up: str = "2026-11-18"
    #: The date of the text that was read, as far as it is known.
    as_of: str = ""


class Fact(Struct, frozen=True):
    """Whether a client has a feature."""

    value: Support
    source: Source | None = None
    note: str = ""


class Limit(Struct, frozen=True):
    """The largest amount that a client accepts; more is cut or refused, as the note says."""

    #: `None`: the client has no such limit, or, without a source, it is unknown.
    amount: int | None
    unit: LimitUnit
    source: Source | None = None
    note: str = ""


class PromptName(Struct, frozen=True):
    """How a client shows an MCP prompt, and how it finds the arguments in what the user types."""

    #: With `{server}` and `{prompt}`; empty if it is unknown or the client shows no prompts.
    pattern: str
    #: `words`: split at spaces, quotes keep words together. `form`: the client asks for each one. `named`: as
    #: `--name="value"`, or by position. `one`: all that is typed is the only argument.
    arguments: Literal["words", "form", "named", "one", "unknown"]
    source: Source | None = None
    note: str = ""


class NativeFile(Struct, frozen=True):
    """Files of a client that hold prompts, skills or instructions."""

    kind: Literal["command", "skill", "instructions"]
    #: In the folder of a project, and for all projects of a user; `None` if there is none.
    project: str | None
    user: str | None
    #: How an argument is written, with `{index}` from 0 or `{name}`; empty if there is no syntax for it.
    argument_syntax: str
    source: Source
    note: str = ""


class ClientFacts(Struct, frozen=True, kw_only=True):
    """All facts about one client. The name is that of `dittybag connect`."""

    name: str
    title: str
    prompts: Fact
    prompt_name: PromptName
    resources: Fact
    list_changed: Fact
    elicitation: Fact
    skills: Fact
    hooks: Fact
    install_links: Fact
    instructions_limit: Limit
    result_limit: Limit
    tool_name_limit: Limit
    tools_limit: Limit
    files: tuple[NativeFile, ...] = ()


#: The features and limits, with the titles of their columns.
FEATURES: Final = {
    "prompts": "MCP prompts",
    "resources": "MCP resources",
    "list_changed": "list_changed",
    "elicitation": "elicitation",
    "skills": "skills",
    "hooks": "hooks",
    "install_links": "install links",
}
LIMITS: Final = {
    "instructions_limit": "server instructions",
    "result_limit": "tool result",
    "tool_name_limit": "tool name",
    "tools_limit": "tools",
}

_UNKNOWN: Final = Fact("unknown")
_CLAUDE_MCP: Final = Source("https://code.claude.com/docs/en/mcp", as_of="2026-08-22")
_CLAUDE_SKILLS: Final = Source("https://code.claude.com/docs/en/skills", as_of="2026-08-22")
_CLAUDE_HOOKS: Final = Source("https://code.claude.com/docs/en/hooks", as_of="2026-08-22")
_MCP_CLIENTS: Final = Source("https://model-context-protocol.mintlify.app/clients.md")
_CURSOR_MCP: Final = Source("https://anysphere.mintlify.app/context/model-context-protocol")
_CURSOR_LINKS: Final = Source("https://cursor.com/docs/mcp/install-links")
_CURSOR_CHECKED: Final = Source("https://canimcp.dev/client/cursor-vscode")
_CURSOR_FILES: Final = Source("https://docs.admtoolk.it/docs/reference/cursor-commands-overview")
_CURSOR_SKILLS: Final = Source("https://www.skills.sh/hktitan/cursor-sdk/cursor-skills-system")
_VSCODE_MCP: Final = Source("https://code.visualstudio.com/api/extension-guides/ai/mcp", as_of="2026-08-21")
_VSCODE_LINKS: Final = Source(
    "https://github.com/microsoft/vscode-docs/blob/main/api/extension-guides/ai/mcp.md", as_of="2025-08-07"
)
_VSCODE_PROMPTS: Final = Source(
    "https://code.visualstudio.com/docs/agent-customization/prompt-files", as_of="2026-08-19"
)
_VSCODE_SKILLS: Final = Source(
    "https://code.visualstudio.com/docs/agent-customization/agent-skills", as_of="2026-08-21"
)
_VSCODE_HOOKS: Final = Source(
    "https://code.visualstudio.com/docs/agent-customization/hooks", as_of="2026-08-21"
)
_VSCODE_TOOLS: Final = Source("https://code.visualstudio.com/docs/agents/run/tools", as_of="2026-08-21")
_VSCODE_INSTRUCTIONS: Final = Source(
    "https://code.visualstudio.com/docs/agent-customization/custom-instructions", as_of="2026-08-21"
)


def _codex(path: str) -> Source:
    return Source(f"https://github.com/openai/codex/blob/main/codex-rs/{path}", as_of="2026-08-22")


def _gemini(path: str) -> Source:
    return Source(f"https://github.com/google-gemini/gemini-cli/blob/main/{path}", as_of="2026-08-21")


_GEMINI_PROMPTS: Final = _gemini("packages/cli/src/services/McpPromptLoader.ts")
_GEMINI_CLIENT: Final = _gemini("packages/core/src/tools/mcp-client.ts")
_WINDSURF_SKILLS: Final = Source("https://docs.windsurf.com/windsurf/cascade/skills.md")
_WINDSURF_TOOLS: Final = Source(
    "https://www.desplega.ai/blog/deep-dive-windsurf-mcp-workflows", as_of="2026-06-16"
)
_WINDSURF_WORKFLOWS: Final = Source("https://docs.windsurf.com/pt-BR/plugins/cascade/workflows")
_WINDSURF_HOOKS: Final = Source("https://docs.rs/crate/agent-config/0.3.3/source/docs/agents/windsurf.md")
_ZED_MCP: Final = Source("https://zed.dev/docs/ai/mcp")
_ZED_ARGUMENTS: Final = Source("https://github.com/zed-industries/zed/issues/21944", as_of="2024-12-12")
_ZED_SKILLS: Final = Source("https://zed.dev/docs/ai/skills")
_ZED_INSTRUCTIONS: Final = Source("https://zed.dev/docs/preview/ai/instructions.html")


CLIENT_FACTS: Final = {
    facts.name: facts
    for facts in (
        ClientFacts(
            name="claude-code",
            title="Claude Code",
            prompts=Fact("yes", _CLAUDE_MCP, "as commands; the result goes into the conversation"),
            prompt_name=PromptName(
                "/mcp__{server}__{prompt}", "words", _CLAUDE_MCP, "spaces in names become underscores"
            ),
            resources=Fact("yes", _CLAUDE_MCP, "with @ in the input"),
            list_changed=Fact("yes", _CLAUDE_MCP, "tools, prompts and resources"),
            elicitation=Fact("yes", _CLAUDE_MCP, "forms and URLs"),
            skills=Fact("yes", _CLAUDE_SKILLS),
            hooks=Fact("yes", _CLAUDE_HOOKS, "SessionStart, PreCompact and others"),
            install_links=_UNKNOWN,
            instructions_limit=Limit(2048, "bytes", _CLAUDE_MCP, "more is cut; descriptions of tools too"),
            result_limit=Limit(
                25_000, "tokens", _CLAUDE_MCP, "more is saved to a file; MAX_MCP_OUTPUT_TOKENS changes it"
            ),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(None, "tools", _CLAUDE_MCP, "no fixed number"),
            files=(
                NativeFile(
                    "command",
                    ".claude/commands/NAME.md",
                    "~/.claude/commands/NAME.md",
                    "$ARGUMENTS[{index}]",
                    _CLAUDE_SKILLS,
                    "`$ARGUMENTS` is all that was typed; quotes keep words together; an argument that is "
                    "missing stays in the text; `` !`command` `` runs a program, and @file includes a file",
                ),
                NativeFile(
                    "skill",
                    ".claude/skills/NAME/SKILL.md",
                    "~/.claude/skills/NAME/SKILL.md",
                    "$ARGUMENTS[{index}]",
                    _CLAUDE_SKILLS,
                ),
            ),
        ),
        ClientFacts(
            name="claude-desktop",
            title="Claude Desktop",
            prompts=Fact("yes", _MCP_CLIENTS),
            prompt_name=PromptName("", "unknown"),
            resources=Fact("yes", _MCP_CLIENTS),
            list_changed=_UNKNOWN,
            elicitation=_UNKNOWN,
            skills=_UNKNOWN,
            hooks=_UNKNOWN,
            install_links=_UNKNOWN,
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(None, "tools"),
        ),
        ClientFacts(
            name="cursor",
            title="Cursor",
            prompts=Fact("yes", _CURSOR_MCP),
            prompt_name=PromptName("", "unknown"),
            resources=Fact("yes", _CURSOR_CHECKED),
            list_changed=Fact("partly", _CURSOR_CHECKED, "tools; unknown for prompts and resources"),
            elicitation=Fact("yes", _CURSOR_MCP),
            skills=Fact("yes", _CURSOR_SKILLS),
            hooks=Fact("yes", _CURSOR_SKILLS, "in .cursor/hooks.json"),
            install_links=Fact("yes", _CURSOR_LINKS, "cursor: links with the entry in base64"),
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(
                40,
                "tools",
                Source("https://gitlab.com/fforster/gitlab-mcp/-/issues/36"),
                "reported by users",
            ),
            files=(
                NativeFile(
                    "command",
                    ".cursor/commands/NAME.md",
                    "~/.cursor/commands/NAME.md",
                    "",
                    _CURSOR_FILES,
                    "the whole file goes to the model, and what the user types after the name",
                ),
                NativeFile(
                    "skill",
                    ".cursor/skills/NAME/SKILL.md",
                    None,
                    "",
                    _CURSOR_SKILLS,
                ),
            ),
        ),
        ClientFacts(
            name="vscode",
            title="VS Code",
            prompts=Fact("yes", _VSCODE_MCP, "as slash commands"),
            prompt_name=PromptName(
                "/mcp.{server}.{prompt}", "form", _VSCODE_MCP, "other pages have it without `mcp.`"
            ),
            resources=Fact("yes", _VSCODE_MCP),
            list_changed=Fact("partly", _VSCODE_MCP, "tools; unknown for prompts and resources"),
            elicitation=Fact("yes", _VSCODE_MCP),
            skills=Fact("yes", _VSCODE_SKILLS),
            hooks=Fact("yes", _VSCODE_HOOKS, "SessionStart, PreCompact and others, in .github/hooks"),
            install_links=Fact("yes", _VSCODE_LINKS, "vscode: links with the entry as JSON"),
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(128, "tools", _VSCODE_TOOLS, "more are refused"),
            files=(
                NativeFile(
                    "command",
                    ".github/prompts/NAME.prompt.md",
                    "User/prompts/NAME.prompt.md in the settings folder Code",
                    "${{input:{name}}}",
                    _VSCODE_PROMPTS,
                    "agents on the Agent Host do not read prompt files, but skills",
                ),
                NativeFile(
                    "skill",
                    ".github/skills/NAME/SKILL.md",
                    "~/.copilot/skills/NAME/SKILL.md",
                    "",
                    _VSCODE_SKILLS,
                ),
                NativeFile("instructions", "AGENTS.md", None, "", _VSCODE_INSTRUCTIONS),
            ),
        ),
        ClientFacts(
            name="codex",
            title="Codex",
            prompts=Fact("no", Source("https://github.com/openai/codex/issues/8342")),
            prompt_name=PromptName("", "unknown"),
            resources=Fact(
                "yes",
                _codex("core/src/tools/handlers/mcp_resource/list_mcp_resources.rs"),
                "by tools of Codex",
            ),
            list_changed=Fact("no", _codex("rmcp-client/src/logging_client_handler.rs"), "it is only logged"),
            elicitation=Fact("yes", _codex("rmcp-client/src/logging_client_handler.rs")),
            skills=Fact("yes", _codex("ext/skills/src/host_roots.rs")),
            hooks=Fact("yes", _codex("hooks/src/declarations.rs"), "SessionStart and others"),
            install_links=_UNKNOWN,
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(
                128,
                "characters",
                _codex("codex-mcp/src/tools.rs"),
                "with the name of the server; more is cut",
            ),
            tools_limit=Limit(None, "tools"),
            files=(
                NativeFile(
                    "skill",
                    ".agents/skills/NAME/SKILL.md",
                    "~/.agents/skills/NAME/SKILL.md",
                    "",
                    _codex("ext/skills/src/host_roots.rs"),
                    "files in ~/.codex/prompts are no longer read; skills replace them",
                ),
                NativeFile(
                    "instructions",
                    "AGENTS.md",
                    "~/.codex/AGENTS.md",
                    "",
                    _codex("config/src/config_toml.rs"),
                    "32 KiB of all such files together are read",
                ),
            ),
        ),
        ClientFacts(
            name="gemini",
            title="Gemini CLI",
            prompts=Fact(
                "yes",
                _GEMINI_PROMPTS,
                "as slash commands; the model gets only the first message, as a JSON string",
            ),
            prompt_name=PromptName("/{prompt}", "named", _GEMINI_PROMPTS, "spaces in names become hyphens"),
            resources=Fact("yes", _gemini("docs/tools/mcp-resources.md"), "by tools of Gemini CLI"),
            list_changed=Fact("yes", _GEMINI_CLIENT, "tools, prompts and resources"),
            elicitation=Fact("no", _GEMINI_CLIENT, "the client has no handler for it"),
            skills=Fact("yes", _gemini("docs/cli/skills.md")),
            hooks=Fact("yes", _gemini("docs/hooks/index.md"), "SessionStart, PreCompress and others"),
            install_links=_UNKNOWN,
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(
                40_000, "characters", _gemini("packages/core/src/config/config.ts"), "more is cut"
            ),
            tool_name_limit=Limit(
                63,
                "characters",
                _gemini("packages/core/src/tools/mcp-tool.ts"),
                "with the name of the server; more is cut",
            ),
            tools_limit=Limit(None, "tools"),
            files=(
                NativeFile(
                    "command",
                    ".gemini/commands/NAME.toml",
                    "~/.gemini/commands/NAME.toml",
                    "{{{{args}}}}",
                    _gemini("docs/cli/custom-commands.md"),
                    "`{{args}}` is all that was typed, there is no syntax for several arguments; `!{...}` "
                    "runs a program, and `@{...}` includes a file",
                ),
                NativeFile(
                    "skill",
                    ".gemini/skills/NAME/SKILL.md",
                    "~/.gemini/skills/NAME/SKILL.md",
                    "",
                    _gemini("docs/cli/skills.md"),
                ),
            ),
        ),
        ClientFacts(
            name="windsurf",
            title="Windsurf",
            prompts=_UNKNOWN,
            prompt_name=PromptName("", "unknown"),
            resources=_UNKNOWN,
            list_changed=_UNKNOWN,
            elicitation=_UNKNOWN,
            skills=Fact("yes", _WINDSURF_SKILLS),
            hooks=Fact("yes", _WINDSURF_HOOKS, "in .windsurf/hooks.json"),
            install_links=_UNKNOWN,
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(100, "tools", _WINDSURF_TOOLS),
            files=(NativeFile("command", ".windsurf/workflows/NAME.md", None, "", _WINDSURF_WORKFLOWS),),
        ),
        ClientFacts(
            name="zed",
            title="Zed",
            prompts=Fact("yes", _ZED_MCP),
            prompt_name=PromptName(
                "/{prompt}", "one", _ZED_ARGUMENTS, "prompts with several arguments are not listed"
            ),
            resources=Fact("no", _ZED_MCP),
            list_changed=Fact("partly", _ZED_MCP, "tools"),
            elicitation=Fact("no", _ZED_MCP),
            skills=Fact("yes", _ZED_SKILLS),
            hooks=_UNKNOWN,
            install_links=_UNKNOWN,
            instructions_limit=Limit(None, "characters"),
            result_limit=Limit(None, "tokens"),
            tool_name_limit=Limit(None, "characters"),
            tools_limit=Limit(None, "tools"),
            files=(
                NativeFile(
                    "skill", ".agents/skills/NAME/SKILL.md", "~/.agents/skills/NAME/SKILL.md", "", _ZED_SKILLS
                ),
                NativeFile("instructions", "AGENTS.md", "~/.config/zed/AGENTS.md", "", _ZED_INSTRUCTIONS),
            ),
        ),
    )
}


def sources(facts: ClientFacts) -> Iterator[Source]:
    """Yield the source of every fact about a client that is known."""
    for name in (*FEATURES, "prompt_name", *LIMITS):
        source = getattr(facts, name).source
        if source is not None:
            yield source
    yield from (file.source for file in facts.files)


def summary(facts: ClientFacts, server: str) -> str:
    """Return in one or two sentences what a client shows of a server with this name."""
    sentences = []
    if facts.prompt_name.pattern:
        sentences.append(f"Shows prompts as {facts.prompt_name.pattern.format(server=server, prompt='NAME')}")
    for value, start in (("yes", "Has"), ("partly", "Partly has"), ("no", "Lacks"), ("unknown", "Unknown")):
        names = [title for field, title in FEATURES.items() if getattr(facts, field).value == value]
        if names:
            sentences.append(f"{start}: {', '.join(names)}")
    return ". ".join(sentences)
