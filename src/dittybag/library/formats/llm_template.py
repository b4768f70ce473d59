"""Templates of the `llm` command: YAML with a `prompt`, a `system` text or both.

They use `$name`, `${name}` and `$$` as Python's `string.Template` does. The text is the system text, a
blank line, the prompt. `$input` is the argument `input`, required where it is used; a template without it
gets an optional `input` at the end, as `llm` does it. Other variables are required unless `defaults` has a
value for them. A `$` that is none of these stops `llm`; here it comes out as it is written, with a warning.
Other YAML files are common beside prompts, and so are strings that `llm` would take as prompts: they are
left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from dittybag.domain.errors import clip
from dittybag.library.formats.argument_declarations import DeclaredArgument, signature
from dittybag.library.formats.diagnostics import Diagnostics
from dittybag.library.formats.escaping import literal
from dittybag.library.formats.fabric import appended_input
from dittybag.library.formats.parsed_prompt import ParsedPrompt
from dittybag.library.formats.summary_text import described, first_line, titled
from dittybag.library.formats.yaml_nodes import YamlNode, YamlProblem, argument_text, parsed, text_of

_VARIABLE: Final = re.compile(r"\$(?:(\$)|([_a-zA-Z]\w*)|\{([_a-zA-Z]\w*)\}|)", re.ASCII)
_MEANT: Final = re.compile(r"^(?:prompt|system)[ \t]*:", re.MULTILINE)


def read(file: str, key: str, content: str, notes: Diagnostics) -> Iterator[ParsedPrompt]:
    """The prompt in a YAML file, if there is one."""
    document = parsed(content)
    if isinstance(document, YamlProblem):
        message = f"Not read as an llm template: it is not valid YAML ({document.message})"
        tell = notes.error if _MEANT.search(content) else notes.warning
        tell(message, document.line)
        return
    fields = document.value if document is not None and isinstance(document.value, dict) else None
    if fields is None:
        notes.warning("Not an llm template: it is not a mapping with 'prompt' or 'system'")
        return
    texts = [
        (field, fields[field]) for field in ("system", "prompt") if (text_of(fields.get(field)) or "").strip()
    ]
    if not texts:
        wrong = next((fields[field] for field in ("prompt", "system") if field in fields), None)
        found = "has no text" if wrong is not None else "is missing"
        notes.warning(f"Not an llm template: 'prompt' or 'system' {found}", wrong.line if wrong else None)
        return
    yield _draft(file, key, fields, texts, notes)


def _draft(
    file: str, key: str, fields: dict[str, YamlNode], texts: list[tuple[str, YamlNode]], notes: Diagnostics
) -> ParsedPrompt:
    defaults = _defaults(fields.get("defaults"), notes)
    text = "\n\n".join(_joined(node, last=node is texts[-1][1]) for _, node in texts)
    used = dict.fromkeys(found[2] or found[3] for found in _VARIABLE.finditer(text) if found[2] or found[3])
    wanted = [
        DeclaredArgument(written=name, required=True, default=None if name == "input" else defaults.get(name))
        for name in used
    ]
    if "input" not in used:
        wanted.append(DeclaredArgument(written="input", description="Added after the text"))
    names = signature(wanted, notes, rename=True)
    pieces = []
    at = 0
    for found in _VARIABLE.finditer(text):
        pieces.append(literal(text[at : found.start()]))
        name = names.names.get(found[2] or found[3] or "")
        pieces.append(f"{{{{ {name} }}}}" if name else literal("$" if found[1] else found[0]))
        at = found.end()
    pieces.append(literal(text[at:]))
    if any(found[0] == "$" for found in _VARIABLE.finditer(text)):
        notes.warning("A '$' is not followed by a name; write '$$' for a dollar sign", texts[0][1].line)
    if "input" not in used and "input" in names.names:
        pieces.append(appended_input(text))
    return ParsedPrompt(
        key=key,
        title=titled(text_of(fields.get("title")) or text_of(fields.get("name"))),
        description=described(text_of(fields.get("description"))) or first_line(text),
        arguments=names.arguments,
        defaults=names.defaults,
        text="".join(pieces),
        template=True,
        file=file,
    )


def _joined(node: YamlNode, *, last: bool) -> str:
    text = text_of(node) or ""
    return text if last else text.rstrip("\r\n")


def _defaults(node: YamlNode | None, notes: Diagnostics) -> dict[str, str]:
    if node is None or (isinstance(node.value, str) and text_of(node) is None):
        return {}
    if not isinstance(node.value, dict):
        notes.warning("'defaults' must be a mapping from names to values", node.line)
        return {}
    found = {name: argument_text(value) for name, value in node.value.items()}
    for name in (name for name, value in found.items() if value is None):
        notes.warning(f"The default of '{clip(name, 60)}' has no value", node.value[name].line)
    return {name: value for name, value in found.items() if value is not None}
