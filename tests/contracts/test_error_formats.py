"""Every error has a message in every format, a code and an exit status, and is on the reference page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import msgspec
import pytest

import dittybag
from dittybag.cli.error_output import ExitStatus, exit_status
from dittybag.contracts.error_formats import (
    ErrorFormat,
    bounded_json_error,
    json_error,
    plain_text_error,
    prose_error,
)
from dittybag.domain import errors
from dittybag.domain.errors import Conflict, DittybagError, Invalid, NotFound, Problem, StorageError
from dittybag.protocol.wire_errors import ProtocolError
from dittybag.web.browser_requests import status_of
from tests.stdio_server_process import ROOT

PAGE = ROOT / "docs" / "reference" / "errors.md"

#: A sample of every error, with its code in the JSON format and its exit status.
SAMPLES: list[tuple[DittybagError, str, ExitStatus]] = [
    (Invalid([Problem("title", "Title is long")]), "INVALID_TITLE", ExitStatus.REFUSED),
    (errors.UnknownFormat("x.txt", "unknown format"), "INVALID_INPUT", ExitStatus.REFUSED),
    (errors.ProjectNotFound("p"), "PROJECT_NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ProjectGone(), "PROJECT_NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.WorkspaceNotFound("x.db"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.PromptNotFound("x", "p"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.LibraryPromptNotFound("x:y"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ArgumentInvalid("x must be one of a, b"), "INVALID_INPUT", ExitStatus.REFUSED),
    (errors.ArgumentMissing("x"), "INVALID_INPUT", ExitStatus.REFUSED),
    (errors.ContentFileMissing("x.md"), "INVALID_INPUT", ExitStatus.REFUSED),
    (errors.RenderingFailed("it is too long", line=3), "INVALID_INPUT", ExitStatus.REFUSED),
    (errors.LibraryNotFound("x"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.SourceNotFound("x", "is not there"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ResourceNotFound("x", "p"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ReferenceNotFound("x", ["y"]), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.TaskNotFound(7), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ChangeNotFound(7), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.ChangePurged(7, "ann", 0), "PURGED", ExitStatus.NOT_FOUND),
    (errors.NothingToPurge("x"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.AmbiguousReference("x", ["prompt:x", "resource:x"]), "CONFLICT", ExitStatus.CONFLICT),
    (errors.PurgeUnfinished("busy"), "ERROR", ExitStatus.REFUSED),
    (errors.NameTaken("prompt", "x", "p"), "DUPLICATE_NAME", ExitStatus.CONFLICT),
    (errors.TitleTaken("x", "p"), "DUPLICATE_TITLE", ExitStatus.CONFLICT),
    (errors.UriTaken("x:y", "p"), "DUPLICATE_URI", ExitStatus.CONFLICT),
    (errors.SeveralConflicts([errors.UriTaken("x:y", "p")]), "CONFLICT", ExitStatus.CONFLICT),
    (errors.Outdated("prompt", "x"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.ChangedMeanwhile(), "CONFLICT", ExitStatus.CONFLICT),
    (errors.TooManyChanges(100_001, 100_000), "CONFLICT", ExitStatus.CONFLICT),
    (errors.TaskClaimed(7, "x" * 1000, 1, 2), "TASK_CLAIMED", ExitStatus.CONFLICT),
    (errors.ClaimLost(7, 3, holder="x", since=1), "CLAIM_LOST", ExitStatus.CONFLICT),
    (errors.TaskNotReady(7, "is done"), "TASK_NOT_READY", ExitStatus.CONFLICT),
    (errors.TaskCycle(["task 1", "task 2"]), "TASK_CYCLE", ExitStatus.CONFLICT),
    (errors.LibraryExists("x"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.LibraryEdited("x"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.LibrariesBusy(), "CONFLICT", ExitStatus.CONFLICT),
    (errors.LibraryRefused("x", "is damaged"), "ERROR", ExitStatus.REFUSED),
    (errors.LibraryTooLarge("x", "it has too many files"), "ERROR", ExitStatus.REFUSED),
    (errors.SourceFailed("x", "is damaged"), "ERROR", ExitStatus.REFUSED),
    (errors.ProjectProtected("default"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.UserNotFound("x"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.TokenNotFound(7), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.MemberNotFound("x", "p"), "NOT_FOUND", ExitStatus.NOT_FOUND),
    (errors.UserDisabled("x"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.LastMember("x", "p"), "CONFLICT", ExitStatus.CONFLICT),
    (errors.NotAllowed("You may not"), "NOT_ALLOWED", ExitStatus.REFUSED),
    (errors.StorageBusy("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageFull("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageReadOnly("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageDamaged("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageForeign("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageTooNew("w", found=2, known=1), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageUnreleased("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageClosed("w"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageFailed("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.LibraryUnwritable("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.LinksUnusable("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageReplaced("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageUnreachable("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.StorageUnsure("w", "secret detail"), "STORAGE_ERROR", ExitStatus.STORAGE),
    (errors.CopyRefused("it already contains other data"), "ERROR", ExitStatus.REFUSED),
]


def _subclasses(kind: type[DittybagError]) -> Iterator[type[DittybagError]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _subclasses(subclass)


def test_every_error_has_a_sample() -> None:
    families = {NotFound, Conflict, StorageError, errors.PromptUnusable}
    assert {type(error) for error, _, _ in SAMPLES} == set(_subclasses(DittybagError)) - families


def test_codes_are_unique() -> None:
    kinds = set(_subclasses(DittybagError))
    own = [kind.__dict__["code"] for kind in kinds if "code" in kind.__dict__]
    assert len(own) == len(set(own))


def test_all_errors_are_in_one_tree() -> None:
    for module in walk_packages(dittybag.__path__, "dittybag."):
        if ".cli." not in module.name and not module.name.endswith("__main__"):
            import_module(module.name)
    own = {kind.__module__ for kind in _subclasses(DittybagError) if kind.__module__.startswith("dittybag.")}
    assert own == {errors.__name__}


def test_the_page_of_errors_has_every_code_with_its_statuses() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| (\d) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    documented = {code: (tool, int(status), int(web)) for code, tool, status, web in rows}
    assert documented.keys() == {kind.code for kind in _subclasses(DittybagError)} - {"ERROR"}
    for error, _, status in SAMPLES:
        code = msgspec.json.decode(_text(bounded_json_error, error))["error"]["code"]
        tool, documented_status, web = documented.get(error.code, (f"`{code}`", status, status_of(error)))
        assert f"`{code}`" in tool, error.code
        assert (documented_status, web) == (status, status_of(error)), error.code


@pytest.mark.parametrize("folder", ["cli", "assembly"])
def test_the_page_of_errors_has_every_code_of_commands(folder: str) -> None:
    source = Path(dittybag.__path__[0]) / folder
    text = "\n".join(file.read_text() for file in source.glob("*.py"))
    codes = {
        code
        for value in re.findall(r"\bcode(?:: str)?\s?=\s?(.*)", text)
        for code in re.findall(r'"([A-Z_]{4,})"', value)
    }
    assert codes <= set(re.findall(r"^\| `([A-Z_]+)` \|", PAGE.read_text(), re.MULTILINE))


def test_the_page_of_errors_has_every_code_of_the_protocol() -> None:
    own = [kind for kind in ProtocolError.__subclasses__() if kind.__module__.startswith("dittybag.")]
    assert own
    for kind in own:
        assert f"`{kind.code}`" in PAGE.read_text(), kind.__name__


@pytest.mark.parametrize(("error", "code", "status"), SAMPLES, ids=lambda value: type(value).__name__)
def test_an_error_has_a_message_a_code_and_an_exit_status(
    error: DittybagError, code: str, status: ExitStatus
) -> None:
    texts = {
        error_format: _text(error_format, error)
        for error_format in (prose_error, plain_text_error, json_error)
    }
    assert texts[prose_error].startswith("Error: ")
    assert str(error) in texts[plain_text_error]
    decoded = msgspec.json.decode(texts[json_error])["error"]
    assert decoded["code"] == code
    assert decoded["message"]
    assert exit_status(error) == status
    for text in texts.values():
        assert "secret detail" not in text


def _text(error_format: ErrorFormat, error: DittybagError) -> str:
    result = error_format(error)
    assert result.is_error is True
    (block,) = result.content
    text: str = msgspec.to_builtins(block)["text"]
    return text
