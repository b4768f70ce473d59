"""Usage: how often prompts were handed out to clients, and when clients were last seen.

It is counted on a best-effort basis and is not in the change log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import Struct

from dittybag.domain.libraries import LibraryPrompt
from dittybag.domain.prompts import Prompt
from dittybag.domain.text import one_line

#: How a client reaches a server.
Transport = Literal["stdio", "http"]

#: The client of `dittybag prompt render`.
SHELL: Final = "shell"
#: Counts further clients of a prompt that many clients have used.
OTHER_CLIENTS: Final = "other clients"
#: At most this many clients of a prompt are counted separately.
MAX_CLIENTS_OF_PROMPT: Final = 50
#: At most this many clients of a user are remembered.
MAX_CLIENTS_OF_USER: Final = 100
_UNNAMED: Final = "unnamed client"

_NAME_LENGTH: Final = 80
_VERSION_LENGTH: Final = 40


class PromptUse(Struct, frozen=True):
    """A prompt that was handed out to a client."""

    project: int
    #: See `use_key`.
    prompt: str
    client: str


class Client(Struct, frozen=True):
    """A client that sent requests. Its name and version are its own statement."""

    #: Empty where there is no authentication.
    user: str
    name: str
    version: str
    transport: Transport


class SeenClient(Client, frozen=True):
    """A client and when it was last seen, in microseconds since 1970."""

    last_at: int


class ClientUses(Struct, frozen=True):
    """How often a client has used a prompt, and when last."""

    client: str
    count: int
    last_at: int


class PromptUsage(Struct, frozen=True):
    """How often a prompt was used."""

    count: int
    #: Those who used it last come first.
    clients: tuple[ClientUses, ...]

    @property
    def last(self) -> ClientUses | None:
        """The last use; `None` if there was none."""
        return self.clients[0] if self.clients else None


class UsedPrompt(Struct, frozen=True):
    """A prompt and how often it was used."""

    #: See `use_key`.
    prompt: str
    name: str
    title: str
    count: int
    last_at: int

    @property
    def is_library_prompt(self) -> bool:
        return ":" in self.prompt


class PendingUsage(Struct, frozen=True):
    """Uses that have not been written yet."""

    uses: Mapping[PromptUse, int]
    clients: tuple[Client, ...] = ()


def use_key(prompt: Prompt | LibraryPrompt) -> str:
    """Return what identifies a prompt: the id of a stored one, the name of a library prompt."""
    return prompt.id if isinstance(prompt, Prompt) else prompt.name


def client_name(name: str) -> str:
    """Return the name that a client has stated, in one line."""
    return _line(name, _NAME_LENGTH) or _UNNAMED


def client_version(version: str) -> str:
    """Return the version that a client has stated, in one line; empty if it has stated none."""
    return _line(version, _VERSION_LENGTH)


def _line(text: str, length: int) -> str:
    # Databases cannot store lone surrogates.
    return one_line(text.encode(errors="replace").decode(), length)
