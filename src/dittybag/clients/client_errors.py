"""Errors about a client's configuration file. The file is unchanged in every case.

ClientFileError              file, problem
├── ClientFileRefused        the file cannot be edited safely
├── ClientEntryForeign       the entry starts another program
├── ClientFileBusy           another program keeps changing the file
└── ClientFileUnreachable    the file could not be read or written
"""

from __future__ import annotations

from typing import ClassVar


class MalformedConfig(ValueError):
    """A text is not valid in its format; the message says why."""


class ClientFileError(Exception):
    """A client's configuration file could not be used."""

    code: ClassVar[str]
    advice: ClassVar[str]

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(f"{file}: {problem}")


class ClientFileRefused(ClientFileError):
    """The file cannot be edited safely."""

    code = "CLIENT_FILE_REFUSED"
    advice = "nothing was changed; fix the file, or add the entry manually"


class ClientEntryForeign(ClientFileError):
    """The entry was not written by Dittybag and starts another program."""

    code = "CLIENT_ENTRY_FOREIGN"
    advice = "nothing was changed; remove the entry manually, or choose another --name"


class ClientFileBusy(ClientFileError):
    """Another program keeps changing the file."""

    code = "CLIENT_FILE_BUSY"
    advice = "nothing was changed; quit the client and try again"


class ClientFileUnreachable(ClientFileError):
    """The file could not be read or written."""

    code = "CLIENT_FILE_UNREACHABLE"
    advice = "nothing was changed; check the disk and the permissions of the file and its folder"
