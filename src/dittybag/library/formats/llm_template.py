"""Templates of the `llm` command: YAML with a `prompt`, a `system` text or both.

Variables are `$name`, `${name}` and `$$`, as in Python's `string.Template`. The text is the system text, a
blank line, and the prompt. `$input` is the argument `input`, which is then required; a template without
`$input` gets an optional `input` at the end, as in `llm`. Other variables are required unless `defaults`
has a value. Any other `$` is an error in `llm`; here it is kept as text, with a warning. Other YAML files,
and files that contain only a string, are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dittybag.domain.errors import clip
from dittybag.library.formats.argument_declarations import DeclaredArgument, build_signature
from dittybag.library.formats.escaping import replace_placeholders
from dittybag.library.formats.fabric import append_input
from dittybag.library.formats.parsed_prompt import Diagnostics, ParsedPrompt
from dittybag.library.formats.summary_text import first_line, normalise_description, normalise_title
from dittybag.yaml_nodes import YamlNode, YamlProblem, argument_text, parse_yaml, text_of

_VARIABLE: Final = re.compile(r"\$(?:(\$)|([_a-zA-Z]\w*)|\{([_a-zA-Z]\w*)\}|)", re.ASCII)
_LOOKS_LIKE_TEMPLATE: Final = re.compile(r"^(?:prompt|system)[ \t]*:", re.MULTILINE)


def read(content: str, diagnostics: Diagnostics) -> Iterator[ParsedPrompt]:
    """Parse a YAML file; yields at most one prompt."""
    document = parse_yaml(content)
    if isinstance(document, YamlProblem):
        message = f"Not an llm template: not valid YAML ({document.message})"
        report = diagnostics.error if _LOOKS_LIKE_TEMPLATE.search(content) else diagnostics.warning
        report(message, document.line)
        return
    if document is None or not isinstance(document.value, dict):
        diagnostics.warning("Not an llm template: not a mapping with 'prompt' or 'system'")
        return
    fields = document.value
    texts = [
        (field, fields[field]) for field in ("system", "prompt") if (text_of(fields.get(field)) or "").strip()
    ]
    if not texts:
        wrong = next((fields[field] for field in ("prompt", "system") if field in fields), None)
        found = "has no text" if wrong is not None else "is missing"
        diagnostics.warning(
            f"Not an llm template: 'prompt' or 'system' {found}", wrong.line if wrong else None
        )
        return
    yield _parse(fields, texts, diagnostics)


def _parse(
    fields: dict[str, YamlNode], texts: list[tuple[str, YamlNode]], diagnostics: Diagnostics
) -> ParsedPrompt:
    defaults = _parse_defaults(fields.get("defaults"), diagnostics)
    text = "\n\n".join(_part_text(node, last=node is texts[-1][1]) for _, node in texts)
    used = dict.fromkeys(found[2] or found[3] for found in _VARIABLE.finditer(text) if found[2] or found[3])
    wanted = [
        DeclaredArgument(
            source_name=name, required=True, default=None if name == "input" else defaults.get(name)
        )
        for name in used
    ]
    if "input" not in used:
        wanted.append(DeclaredArgument(source_name="input", description="Text to append to the prompt"))
    names = build_signature(wanted, diagnostics, rename=True)

    def replacement(found: re.Match[str]) -> str | None:
        name = names.names.get(found[2] or found[3] or "")
        return f"{{{{ {name} }}}}" if name else "$" if found[1] else None

    source = replace_placeholders(text, _VARIABLE.finditer(text), replacement)
    if any(found[0] == "$" for found in _VARIABLE.finditer(text)):
        diagnostics.warning("A '$' is not followed by a name; write '$$' for a dollar sign", texts[0][1].line)
    if "input" not in used and "input" in names.names:
        source += append_input(text)
    return ParsedPrompt(
        key=diagnostics.key,
        title=normalise_title(text_of(fields.get("title")) or text_of(fields.get("name"))),
        description=normalise_description(text_of(fields.get("description"))) or first_line(text),
        arguments=names.arguments,
        defaults=names.defaults,
        text=source,
        template=True,
        file=diagnostics.file,
    )


def _part_text(node: YamlNode, *, last: bool) -> str:
    text = text_of(node) or ""
    return text if last else text.rstrip("\r\n")


def _parse_defaults(node: YamlNode | None, diagnostics: Diagnostics) -> dict[str, str]:
    if node is None or (isinstance(node.value, str) and text_of(node) is None):
        return {}
    if not isinstance(node.value, dict):
        diagnostics.warning("'defaults' must be a mapping from names to values", node.line)
        return {}
    found = {name: argument_text(value) for name, value in node.value.items()}
    for name in (name for name, value in found.items() if value is None):
        diagnostics.warning(f"The default of '{clip(name, 60)}' has no value", node.value[name].line)
    return {name: value for name, value in found.items() if value is not None}
