"""The layout of a folder of readable files: which file holds what, and its fields.

dittybag.yaml                                 says that this is an export
projects/NAME/project.yaml
projects/NAME/prompts/NAME.md                the text is the content, to the byte
projects/NAME/resources/NAME/resource.yaml
projects/NAME/resources/NAME/content.EXT     the content itself
tasks/000123-SOME-WORDS.md                   the text are the notes
history/changes.jsonl                        the log, if it was asked for
history/contents/AB/SHA256                   what resources held in the past
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MARKER: Final = "dittybag.yaml"
#: Git must not change how lines end.
ATTRIBUTES: Final = ".gitattributes"
ATTRIBUTES_TEXT: Final = b"* -text\n"
PROJECTS: Final = "projects"
PROJECT: Final = "project.yaml"
PROMPTS: Final = "prompts"
RESOURCES: Final = "resources"
RESOURCE: Final = "resource.yaml"
CONTENT: Final = "content."
TASKS: Final = "tasks"
HISTORY: Final = "history"
CHANGES: Final = "history/changes.jsonl"
CONTENTS: Final = "history/contents"


class MarkerFields(Struct, frozen=True, kw_only=True):
    """What an export says of itself."""

    format: str = ""
    version: int = 0
    #: The only project, if it is not the whole workspace.
    project: str = ""
