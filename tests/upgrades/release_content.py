"""What is written into the workspace and the client files of a release: one of everything."""

from __future__ import annotations

from typing import Any, Final

#: Files that commands read, in the folder that they run in.
FILES: Final = {
    "notes.txt": "Grüße aus Köln.\nThe deployment runs on Fridays.\n".encode(),
    "logo.bin": bytes(range(256)),
    "page.md": b"# {name}\n",
}

#: The name of the token whose text is kept with the expected contents.
KEPT_TOKEN: Final = "kept"

#: Commands that write, in order. A version that does not know one of them leaves it out.
COMMANDS: Final = (
    ("prompt", "add", "review", "Review this {{ language }} code for {{ focus }}.", "--title", "Code review",
     "--description", "Finds defects", "-t", "code", "-t", "team", "-a", "language", "-a",
     "focus?: what to look at"),
    ("prompt", "add", "greet", "Say hello: Grüße, 你好, \N{WAVING HAND SIGN}", "-t", "fun"),
    ("prompt", "add", "mistake", "Deleted later"),
    ("prompt", "update", "greet", "Say hello in four languages: Grüße, 你好, \N{WAVING HAND SIGN}"),
    ("prompt", "delete", "mistake"),
    ("tag", "add", "greet", "shared"),
    ("tag", "rename", "fun", "funny"),
    ("resource", "add", "notes.txt", "--name", "notes", "--title", "Notes", "--description", "Plain text"),
    ("resource", "add", "logo.bin", "--name", "logo", "--mime-type", "application/octet-stream"),
    ("resource", "add", "page.md", "--name", "page", "--uri", "dittybag://pages/{name}"),
    ("resource", "update", "notes", "--title", "Notes of the team"),
    ("project", "create", "website"),
    ("prompt", "add", "deploy", "Deploy the website.", "-p", "website"),
    ("user", "add", "alice"),
    ("user", "add", "bob"),
    ("project", "share", "website", "alice"),
    ("project", "share", "website", "bob", "--read"),
    ("user", "disable", "bob"),
    ("token", "create", "--user", "alice", "--scope", "write", "--label", KEPT_TOKEN),
    ("token", "create", "--user", "alice", "--scope", "read", "--expires", "2099-01-01"),
    ("token", "create", "--user", "alice", "--scope", "admin"),
    ("token", "revoke", "3"),
    ("task", "add", "Réserver un café", "-P", "5", "-e", "deep", "--estimate", "2hr", "-n", "Près de la gare",
     "-d", "2030-01-02"),
    ("task", "add", "Buy beans"),
    ("task", "add", "Publish the site", "-p", "website"),
    ("task", "add", "Deleted later"),
    ("task", "done", "2"),
    ("task", "delete", "4"),
    ("task", "add", "Write the imprint", "-p", "website", "--parent", "3", "--blocked-by", "1", "-l",
     "urgent", "--link", "review", "--assignee", "alice", "--comment", "Ask the lawyer first"),
    ("task", "comment", "3", "The domain is registered", "--as", "alice"),
    ("task", "update", "1", "--priority", "4"),
    ("task", "claim", "1", "--lease", "1h", "--as", "alice"),
    ("prompt", "update", "review", "--title", "A title that is undone"),
    ("undo", "--yes"),
    ("pin", "review"),
    ("pin", "task:3", "-p", "website"),
)  # fmt: skip

#: What a client sends over standard input, after `initialize`.
CALLS: Final[tuple[dict[str, Any], ...]] = (
    {"method": "prompts/get", "params": {"name": "review", "arguments": {"language": "C", "focus": "leaks"}}},
    {
        "method": "tools/call",
        "params": {
            "name": "task_create",
            "arguments": {"title": "Created by a client", "project": "Free text"},
            "_meta": {"dittybag/idempotencyKey": "release-1"},
        },
    },
)

#: The configuration files of clients, with unusual but valid formatting, below the home folder.
_JSONC: Final = '// mine\r\n{\r\n\t"%s": {\r\n\t\t"other": {"command": "x",}, // keep\r\n\t},\r\n\t"z" :1 }'
_JSON: Final = '{"numStartups":41,"%s":{"other":{"command":"x"}},\n\n   "z":\n[1, 2] }\n\n'
CLIENT_FILES: Final = {
    "claude-code": (".claude.json", _JSON % "mcpServers"),
    "claude-desktop": (".config/Claude/claude_desktop_config.json", _JSON % "mcpServers"),
    "cursor": (".cursor/mcp.json", _JSONC % "mcpServers"),
    "vscode": (".config/Code/User/mcp.json", _JSONC % "servers"),
    "codex": (
        ".codex/config.toml",
        '# mine\r\nmodel="o3"\r\n[ mcp_servers.other ] # keep\r\n  command = \'x\'\r\n[projects."/x"]',
    ),
    "gemini": (".gemini/settings.json", _JSONC % "mcpServers"),
    "windsurf": (".codeium/windsurf/mcp_config.json", _JSON % "mcpServers"),
    "zed": (".config/zed/settings.json", _JSONC % "context_servers"),
}
#: Files with hooks of the user.
HOOK_FILES: Final = {
    ".claude/settings.json": '{\n  "hooks": {"Stop": [{"hooks": []}]},\n  "model":"opus" }\n',
}

#: Commands that edit files of clients. The first word after `connect` may be left out by a version.
CONNECT_COMMANDS: Final = (
    ("connect", *CLIENT_FILES),
    *(("connect", client) for client in CLIENT_FILES),
    ("connect", "cursor", "--scope", "project", "--project", "website"),
    ("connect", "claude-code", "--scope", "project"),
    ("connect", "claude-code", "--hooks"),
    ("connect", "codex", "--hooks"),
    ("connect", "gemini", "--hooks"),
    ("connect", "cursor", "--hooks"),
    ("connect", "vscode", "--hooks"),
)

#: Commands that publish prompts as files of clients.
PUBLISH_COMMANDS: Final = (
    ("publish", "review", "greet", "--to", "claude-code"),
    ("publish", "review", "--to", "gemini", "--user"),
    ("publish", "greet", "--to", "agents-md"),
)
#: Files of the project folder before something is published.
PROJECT_FILES: Final = {"AGENTS.md": "# Agents\n\nUse tabs."}
