"""What can go wrong with a client's configuration file; it is left as it was in every case.

ClientError          file, problem
├── Refused          it is not what an edit could be made in safely
├── Foreign          the entry starts another program
├── Busy             somebody else keeps changing it
└── Unreachable      it could not be read or written
"""

from __future__ import annotations

from typing import ClassVar


class Malformed(ValueError):
    """A text is not what its format asks for; the message says why."""


class ClientError(Exception):
    """A client's configuration file could not be used."""

    code: ClassVar[str]
    advice: ClassVar[str]

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(f"{file}: {problem}")


class Refused(ClientError):
    """The file is not what an edit could be made in safely."""

    code = "CLIENT_FILE_REFUSED"
    advice = "nothing was changed: mend the file, or put the entry in by hand"


class Foreign(ClientError):
    """The entry was not made by Dittybag and starts another program."""

    code = "CLIENT_ENTRY_FOREIGN"
    advice = "nothing was changed: take it out by hand, or give another --name"


class Busy(ClientError):
    """Somebody else keeps changing the file."""

    code = "CLIENT_FILE_BUSY"
    advice = "nothing was changed: quit the client and try again"


class Unreachable(ClientError):
    """The file could not be read or written."""

    code = "CLIENT_FILE_UNREACHABLE"
    advice = "nothing was changed: check the disk and the permissions of the file and its folder"
