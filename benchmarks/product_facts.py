"""What the products say about themselves: each fact with the page that it was read on.

The facts about other products were read on `READ_ON` in their repositories, at the commits of the sources.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

READ_ON: Final = "2026-11-18"
#: Says that a fact was looked for in the source, and not found.
UNKNOWN: Final = "not documented"


class Source(Struct, frozen=True):
    """Where facts about a product were read."""

    title: str
    #: Its files are below this address; empty for our own pages.
    address: str = ""
    #: The date of the commit.
    date: str = ""

    def link(self, page: str) -> str:
        return page if "://" in page else self.address + page


class Fact(Struct, frozen=True):
    """A fact, and the page that says it: a path in the source, or an address."""

    text: str
    page: str


class Feature(Struct, frozen=True):
    """A row of the table, with a fact for each source in their order."""

    title: str
    facts: tuple[Fact, ...]


def _github(title: str, repository: str, commit: str, date: str) -> Source:
    return Source(title, f"https://github.com/{repository}/blob/{commit}/", date)


SOURCES: Final = (
    Source("Dittybag"),
    _github("Backlog.md", "MrLesk/Backlog.md", "6286bf972ce376cf7b9c30b3cf329d856c08285b", "2026-08-20"),
    _github(
        "Task Master",
        "eyaltoledano/claude-task-master",
        "c0c98d367c55296bfe69e65680625b6db437af02",
        "2026-04-23",
    ),
    _github(
        "Shrimp Task Manager",
        "cjo4m06/mcp-shrimp-task-manager",
        "8a3be6bced310c7b660e5cfc3f42e4e5e45f2f61",
        "2025-08-21",
    ),
    _github(
        "server-memory",
        "modelcontextprotocol/servers",
        "76d64c822f5125032f89eb71dbdb94e42b434821",
        "2026-07-29",
    ),
    _github(
        "basic-memory",
        "basicmachines-co/basic-memory",
        "4d1dfdb7e2cf9bfaff83c75daa8f02ce45ccc552",
        "2026-08-21",
    ),
    _github("beads", "steveyegge/beads", "fbcee6c6246c874ed98a129d9c1ac22127d8c585", "2026-06-01"),
    _github(
        "GitHub's server",
        "github/github-mcp-server",
        "64a49f34d076b6f5917dae1424521d43c7bcae84",
        "2026-08-03",
    ),
)
_README: Final = "README.md"
_MEMORY: Final = "src/memory/README.md"

FEATURES: Final = (
    Feature(
        "keeps",
        (
            Fact("prompts, prompt libraries, resources, tasks", "index.md"),
            Fact("tasks, documents, decisions", "CLI-INSTRUCTIONS.md"),
            Fact("tasks", _README),
            Fact("tasks, rules of the project", _README),
            Fact("entities, their observations and relations", _MEMORY),
            Fact("notes with observations and relations", _README),
            Fact("issues, messages, memories", _README),
            Fact("nothing itself: issues, pull requests and code are on GitHub", _README),
        ),
    ),
    Feature(
        "where the data is",
        (
            Fact("an SQLite file, or PostgreSQL", "guides/postgres.md"),
            Fact("Markdown files in the project", _README),
            Fact("`tasks.json` in the project", "apps/docs/capabilities/task-structure.mdx"),
            Fact("`tasks.json` in a folder of your choice", "src/models/taskModel.ts"),
            Fact("one file of JSON lines", _MEMORY),
            Fact("Markdown files, with an index in SQLite or PostgreSQL", _README),
            Fact("a Dolt database in the project", _README),
            Fact("GitHub", _README),
        ),
    ),
    Feature(
        "plans work",
        (
            Fact("no: agents add plans", "reference/agent-tools.md"),
            Fact("instructions for agents, with three reviews", _README),
            Fact("with models: reads a requirements document, expands tasks", _README),
            Fact("with prompts that guide the agent: plan, analyse, split, verify", "docs/tools.md"),
            Fact("no such tool", _MEMORY),
            Fact("no such tool", _README),
            Fact("work graphs, with templates", "docs/MOLECULES.md"),
            Fact(UNKNOWN, _README),
        ),
    ),
    Feature(
        "search",
        (
            Fact(
                "words and their forms, ranked; no embeddings",
                "decisions/0023-rank-stems-in-a-second-index.md",
            ),
            Fact("fuzzy", _README),
            Fact(UNKNOWN, "apps/docs/capabilities/mcp.mdx"),
            Fact("tasks by criteria", "docs/tools.md"),
            Fact("parts of names, types and observations", "src/memory/index.ts"),
            Fact("words, and meaning by embeddings", "docs/semantic-search.md"),
            Fact("text in titles and ids", "docs/CLI_REFERENCE.md"),
            Fact("GitHub's: code, issues, commits and more", _README),
        ),
    ),
    Feature(
        "one of several agents claims a task",
        (
            Fact("yes, with a lease", "guides/several-agents.md"),
            Fact(UNKNOWN, "CLI-INSTRUCTIONS.md"),
            Fact(UNKNOWN, "apps/docs/capabilities/mcp.mdx"),
            Fact(
                "several agents on one folder are not supported",
                "https://github.com/cjo4m06/mcp-shrimp-task-manager/issues/52",
            ),
            Fact("keeps no tasks", _MEMORY),
            Fact("keeps no tasks", _README),
            Fact("yes, `bd update --claim`", _README),
            Fact("assignees of issues", _README),
        ),
    ),
    Feature(
        "history and undo",
        (
            Fact("every change, with undo", "guides/five-minutes.md"),
            Fact("through Git", _README),
            Fact(UNKNOWN, "apps/docs/capabilities/mcp.mdx"),
            Fact("commits every change in a Git repository of its own", "src/models/taskModel.ts"),
            Fact(UNKNOWN, _MEMORY),
            Fact("snapshots in the paid cloud; locally your own", _README),
            Fact("every write is a commit in Dolt", "docs/DOLT.md"),
            Fact("GitHub's", _README),
        ),
    ),
    Feature(
        "interface for people",
        (
            Fact("web UI, shell", "guides/web.md"),
            Fact("web UI, terminal board, shell, your editor", _README),
            Fact("shell, board in VS Code", "apps/extension/README.md"),
            Fact("two web UIs", _README),
            Fact(UNKNOWN, _MEMORY),
            Fact("Obsidian, your editor, shell; web UI in the paid cloud", _README),
            Fact("shell; web UIs by others", "docs/COMMUNITY_TOOLS.md"),
            Fact("GitHub's", _README),
        ),
    ),
    Feature(
        "a team shares it",
        (
            Fact("with a server on PostgreSQL, and users", "guides/users.md"),
            Fact("with Git", _README),
            Fact(UNKNOWN, _README),
            Fact(UNKNOWN, _README),
            Fact(UNKNOWN, _MEMORY),
            Fact("with the paid cloud, or your own sync of files", _README),
            Fact("with Dolt remotes, or a Dolt server", _README),
            Fact("with GitHub", _README),
        ),
    ),
    Feature(
        "Windows without WSL",
        (
            Fact("no", "operate/install.md"),
            Fact("yes", _README),
            Fact("yes", _README),
            Fact("its instructions use WSL2", _README),
            Fact("yes", _MEMORY),
            Fact("yes", _README),
            Fact("yes", _README),
            Fact("yes: hosted by GitHub", _README),
        ),
    ),
    Feature(
        "needs",
        (
            Fact("Python 3.11", "operate/install.md"),
            Fact("npm, Bun, Homebrew or Nix", _README),
            Fact("Node.js; a key of a model's provider, Claude Code or Codex for planning", _README),
            Fact("Node.js 18", _README),
            Fact("Node.js, or Docker", _MEMORY),
            Fact("Python 3.12; an embedding model for search by meaning", "docs/semantic-search.md"),
            Fact("its program `bd`", _README),
            Fact("an account on GitHub", _README),
        ),
    ),
    Feature(
        "licence",
        (
            Fact("Apache-2.0", "../LICENSE"),
            Fact("MIT", "LICENSE"),
            Fact("MIT with Commons Clause", _README),
            Fact("MIT", "LICENSE"),
            Fact("MIT, moving to Apache-2.0", "LICENSE"),
            Fact("AGPL-3.0", "LICENSE"),
            Fact("MIT", "LICENSE"),
            Fact("MIT", "LICENSE"),
        ),
    ),
)
