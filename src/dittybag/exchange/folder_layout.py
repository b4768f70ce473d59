"""The layout of an export folder.

dittybag.yaml                                marks the folder as an export
projects/NAME/project.yaml
projects/NAME/prompts/NAME.md                front matter, then the content, byte for byte
projects/NAME/resources/NAME/resource.yaml
projects/NAME/resources/NAME/content.EXT     the content
tasks/000123-SOME-WORDS.md                   front matter, then the notes
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from dittybag.exchange.folder_tree import FolderTree
from dittybag.exchange.record_front_matter import FIELDS_BYTES, parse_fields

MARKER: Final = "dittybag.yaml"
#: Keeps Git from converting line endings.
ATTRIBUTES: Final = ".gitattributes"
ATTRIBUTES_TEXT: Final = b"* -text\n"
PROJECTS: Final = "projects"
PROJECT: Final = "project.yaml"
PROMPTS: Final = "prompts"
RESOURCES: Final = "resources"
RESOURCE: Final = "resource.yaml"
CONTENT: Final = "content."
TASKS: Final = "tasks"

#: Files with the fields of an entity.
FIELDS_FILE: Final = re.compile(
    rf"{TASKS}/[^/]+\.md|{PROJECTS}/[^/]+/(?:{PROJECT}|{PROMPTS}/[^/]+\.md|{RESOURCES}/[^/]+/{RESOURCE})"
)
CONTENT_FILE: Final = re.compile(rf"({PROJECTS}/[^/]+/{RESOURCES}/[^/]+)/{CONTENT}[^/]*")


class MarkerFields(Struct, frozen=True, kw_only=True):
    """The fields of the marker file."""

    format: str = ""
    version: int = 0
    #: The exported project; empty for a whole workspace.
    project: str = ""


def read_marker(tree: FolderTree) -> MarkerFields:
    """Return the fields of the marker file. Raises `Invalid`, `UnicodeDecodeError` and `OSError`."""
    return parse_fields(tree.read(MARKER, FIELDS_BYTES).decode(), MarkerFields)
