"""The files of the schema migrations, which have the same numbers for both databases."""

from __future__ import annotations

import os
import re
from typing import Final

#: The newest schema version. A constant, so that opening a workspace does not read the folder.
NEWEST_SCHEMA: Final = 16
#: The migration after which the searched texts of tasks have no accents. SQL cannot fold them.
FOLD_ACCENTS: Final = 6
#: The migration that creates the index of the ranked search. SQL cannot compute the stems of words.
INDEX_WORDS: Final = 9
#: The migration that creates the tables that follow from tasks.
SHARE_TASKS: Final = 10
#: The migration that creates the tables with the numbers of prompts and of tags.
KEEP_COUNTS: Final = 11

_FILE: Final = r"(\d{4})_(\w+)\.sql"


def read_migrations(folder: str) -> list[tuple[int, str, str]]:
    """Return the number, name and SQL of every migration in a folder."""
    found = (match for name in os.listdir(folder) if (match := re.fullmatch(_FILE, name)))  # noqa: PTH208
    result = []
    for match in sorted(found, key=lambda match: match[0]):
        with open(os.path.join(folder, match[0]), encoding="utf-8") as file:  # noqa: PTH118, PTH123
            result.append((int(match[1]), match[2], file.read()))
    return result
