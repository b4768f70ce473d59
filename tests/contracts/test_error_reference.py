"""The reference page of errors is up to date and has every code."""

from __future__ import annotations

import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import dittybag
from dittybag.domain import errors
from dittybag.protocol.wire_errors import ProtocolError
from tests.contracts.error_reference import (
    COMMAND_CODES,
    PROTOCOL_ERRORS,
    REFERENCE,
    all_errors,
    render_page,
)
from tests.stdio_server_process import ROOT

SOURCE = ROOT / "src" / "dittybag"


def test_the_page_of_errors_is_current() -> None:
    assert REFERENCE.read_text() == render_page(), "run python -m tests.contracts.error_reference"


def test_all_errors_are_in_one_tree() -> None:
    for module in walk_packages(dittybag.__path__, "dittybag."):
        if ".cli." not in module.name and not module.name.endswith("__main__"):
            import_module(module.name)
    assert {error.__module__ for error in all_errors()} == {errors.__name__}


@pytest.mark.parametrize("folder", ["cli", "assembly"])
def test_the_page_has_every_code_of_commands(folder: str) -> None:
    text = "\n".join(file.read_text() for file in (SOURCE / folder).glob("*.py"))
    codes = {
        code
        for value in re.findall(r"\bcode(?:: str)?\s?=\s?(.*)", text)
        for code in re.findall(r'"([A-Z_]{4,})"', value)
    }
    known = {error.code for error in all_errors()} | COMMAND_CODES.keys()
    assert codes <= known, codes - known
    if folder == "cli":
        assert COMMAND_CODES.keys() <= codes


def test_the_page_has_every_error_of_the_protocol() -> None:
    own = {
        error.__name__ for error in ProtocolError.__subclasses__() if error.__module__.startswith("dittybag.")
    }
    assert own == PROTOCOL_ERRORS.keys()
