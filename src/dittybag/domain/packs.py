"""Context packs: what an agent should know about its work, as text within a budget of tokens.

A pack is Markdown. Stored text is fenced with more backticks than it contains, and titles and names are on
one line, so no stored text can look like another item of the pack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dittybag.domain.errors import clip
from dittybag.domain.text import one_line
from dittybag.domain.times import iso
from dittybag.domain.token_estimate import estimate_tokens

#: Maximum number of characters of a title, an author or a reference.
_LINE_LENGTH: Final = 120
_REF_LENGTH: Final = 300
#: A text is cut only if this many tokens of it fit; otherwise only its reference is shown.
_SHORTEST_TEXT: Final = 24
#: A pass over all items of a part costs time, and is worth it for this many tokens for each text that is cut.
_MAX_PASSES: Final = 2
_WORTHWHILE: Final = 16
#: A token seldom has more characters, so a text is read up to the room for it times this.
_CHARACTERS_PER_TOKEN: Final = 12
#: More words of the paths of files are not searched for.
_MAX_FILE_WORDS: Final = 30
_PATH_WORD: Final = re.compile(r"[^\W_]+")


class PackItem(Struct, frozen=True, kw_only=True):
    """An item of a pack."""

    #: Identifies it, whatever its name is.
    key: str
    #: Why it is in the pack, as in `Pinned prompt`.
    role: str
    #: What tools and commands call it.
    ref: str
    title: str
    #: Microseconds since 1970; `None` for a library prompt.
    at: int | None = None
    author: str | None = None
    text: str = ""
    #: Where to begin if there is no room for the whole text.
    start: int = 0


class PackEntry(Struct, frozen=True, kw_only=True):
    """What a pack shows of an item or of a change, for people who look at the pack."""

    key: str
    role: str
    ref: str
    title: str
    #: 0 if it was left out.
    tokens: int = 0
    #: The number of characters of its text in the pack, and of the whole text.
    shown: int = 0
    length: int = 0


class Pack(Struct, frozen=True):
    """A pack as text, and what is in it."""

    text: str
    tokens: int
    #: In order.
    entries: tuple[PackEntry, ...] = ()
    #: What would be in it with a larger budget, as far as that was looked for.
    left_out: tuple[PackEntry, ...] = ()


class Blocks:
    """The items of a part of a pack, as far as there is room."""

    def __init__(self, room: int) -> None:
        #: In tokens.
        self.room = room
        self.used = 0
        self.texts: list[str] = []
        self.entries: list[PackEntry] = []
        self.left_out: list[PackEntry] = []

    @property
    def keys(self) -> set[str]:
        return {entry.key for entry in self.entries}

    def add(self, item: PackItem, most: int) -> bool:
        """Add an item with a text of at most `most` tokens. Returns whether it fits at all."""
        for room in (min(most, self.room), 0):
            block, shown = _render(item, room)
            tokens = estimate_tokens(block)
            if tokens <= self.room:
                self._append(block, tokens)
                self.entries.append(_entry_of(item, tokens=tokens, shown=shown))
                return True
        return False

    def leave_out(self, items: Iterable[PackItem]) -> None:
        """Record items that do not fit."""
        self.left_out += map(_entry_of, items)

    def add_line(self, line: str, entry: PackEntry | None = None) -> bool:
        """Add a line, which shows an entry or none. Returns whether it fits."""
        tokens = estimate_tokens(line) + 1
        if tokens > self.room:
            return False
        self._append(f"{line}\n", tokens)
        if entry is not None:
            self.entries.append(replace(entry, tokens=tokens))
        return True

    def _append(self, text: str, tokens: int) -> None:
        self.room -= tokens
        self.used += tokens
        self.texts.append(text)


def fill(items: Sequence[PackItem], room: int, most: int) -> Blocks:
    """Return the first items that fit, each with a text of at most `most` tokens."""
    blocks = Blocks(room)
    for number, item in enumerate(items):
        if not blocks.add(item, most):
            blocks.leave_out(items[number:])
            break
    return blocks


def fill_evenly(items: Sequence[PackItem], room: int, most: int) -> Blocks:
    """Like `fill`, but what short texts leave of the room goes to longer ones."""
    blocks = fill(items, room, most)
    for _ in range(_MAX_PASSES):
        cut = sum(entry.shown < entry.length for entry in blocks.entries)
        if not cut or blocks.left_out or blocks.room < cut * _WORTHWHILE:
            break
        most += blocks.room // cut
        longer = fill(items, room, most)
        if longer.left_out:
            break
        blocks = longer
    return blocks


def join(parts: Sequence[Blocks]) -> Pack:
    """Return the parts of a pack as one."""
    text = "".join(block for part in parts for block in part.texts).rstrip("\n") + "\n"
    keys = set().union(*(part.keys for part in parts))
    return Pack(
        text,
        estimate_tokens(text),
        tuple(entry for part in parts for entry in part.entries),
        # An item that did not fit may be in a later part.
        tuple(
            {entry.key: entry for part in parts for entry in part.left_out if entry.key not in keys}.values()
        ),
    )


def short_line(text: str, length: int = _LINE_LENGTH) -> str:
    """Return a stored text on one line, for the head of an item."""
    return clip(one_line(text, length + 1), length)


def dated(at: int) -> str:
    """Return a time to the minute."""
    return f"{iso(at)[:16]}Z"


def file_words(files: Iterable[str]) -> str:
    """Return a query for what is stored about files: their names, then the folders that they are in."""
    parts = [path.replace("\\", "/").rstrip("/").rpartition("/") for path in files]
    names = [_PATH_WORD.findall(name) for _, _, name in parts]
    folders = [_PATH_WORD.findall(folder)[::-1] for folder, _, _ in parts]
    words = dict.fromkeys(word for found in (*names, *folders) for word in found)
    return " ".join(list(words)[:_MAX_FILE_WORDS])


def _entry_of(item: PackItem, *, tokens: int = 0, shown: int = 0) -> PackEntry:
    return PackEntry(
        key=item.key,
        role=item.role,
        ref=item.ref,
        title=item.title,
        tokens=tokens,
        shown=shown,
        length=len(item.text),
    )


def _render(item: PackItem, most: int) -> tuple[str, int]:
    """Return an item as a block of lines, and how many characters of its text the block has.

    The text has about at most `most` tokens.
    """
    ref = short_line(item.ref, _REF_LENGTH)
    title = short_line(item.title)
    head = f"## {item.role} {ref}" + (f": {title}" if title and title != ref else "")
    if item.at is not None:
        head += f" ({dated(item.at)}{f' by {short_line(item.author)}' if item.author else ''})"
    if not item.text:
        return f"{head}\n\n", 0
    # The tokens of lines add up. A fence is longer only if the text has a long row of backticks.
    around = f"{head}\n```\n```\n\n{_cut_line(len(item.text), len(item.text), len(item.text), ref)}"
    room = most - estimate_tokens(around) - 1
    start, end = _piece(item.text, item.start, room)
    if end == start:
        return f"{head}\n(text left out; read {ref})\n\n", 0
    shown = item.text[start:end]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", shown)), default=0))
    cut = ""
    if (start, end) != (0, len(item.text)):
        cut = _cut_line(start, end, len(item.text), ref)
    return f"{head}\n{fence}\n{shown}\n{fence}\n{cut}\n", end - start


def _cut_line(start: int, end: int, length: int, ref: str) -> str:
    return f"(cut: characters {start} to {end} of {length}; read {ref} for the rest)\n"


def _piece(text: str, start: int, room: int) -> tuple[int, int]:
    """Return where the piece of a text begins and ends that has at most `room` tokens."""
    if room < _SHORTEST_TEXT:
        # A short text may fit all the same.
        return (0, len(text)) if room > 0 and _end_of_piece(text, 0, room) == len(text) else (0, 0)
    if (end := _end_of_piece(text, 0, room)) == len(text) or start == 0:
        return 0, end
    return start, _end_of_piece(text, start, room)


def _end_of_piece(text: str, start: int, room: int) -> int:
    """Return the end of the longest piece from `start` on that has at most `room` tokens."""
    limit = min(len(text), start + room * _CHARACTERS_PER_TOKEN)
    end = start
    while end < limit:
        # Line breaks are tokens of their own, so the tokens of lines add up.
        line_end = text.find("\n", end, limit)
        line_end = limit if line_end < 0 else line_end + 1
        tokens = estimate_tokens(text[end:line_end])
        if tokens > room:
            return _end_in_line(text, end, line_end, room)
        room -= tokens
        end = line_end
    return end


def _end_in_line(text: str, start: int, end: int, room: int) -> int:
    fits, too_far = start, end
    while fits + 1 < too_far:
        middle = (fits + too_far) // 2
        if estimate_tokens(text[start:middle]) <= room:
            fits = middle
        else:
            too_far = middle
    # A whole word, if one is near.
    space = text.rfind(" ", start, fits)
    return space if space > start and fits - space < 40 else fits
