"""The bill of materials lists what an installation brings along, and nothing of the machine that wrote it."""

from __future__ import annotations

import json
from pathlib import Path

from packaging.utils import canonicalize_name

import dittybag
from tests.package.dependencies import EXTRAS, installed
from tests.package.distributions import Distributions
from tests.package.sbom import validate, write
from tests.stdio_server_process import ROOT


def test_the_bill_of_materials_lists_dittybag_and_its_dependencies(
    distributions: Distributions, tmp_path: Path
) -> None:
    file = tmp_path / "sbom.json"
    write(distributions.wheel, file, tmp_path)
    text = file.read_text()
    assert validate(text) == ""
    bill = json.loads(text)
    subject = bill["metadata"]["component"]
    assert (subject["name"], subject["version"]) == ("dittybag", dittybag.__version__)
    listed = {canonicalize_name(part["name"]): part["version"] for part in bill["components"]}
    # Newer versions of Python need fewer packages.
    needed = {name: package.version for name, package in installed(*EXTRAS).items()}
    assert listed.items() <= needed.items()
    assert needed.keys() - listed.keys() <= {"typing-extensions"}
    assert all("licenses" in part for part in bill["components"])
    for path in (tmp_path, distributions.wheel.parent, ROOT):
        assert str(path) not in text


def test_an_invalid_bill_of_materials_is_found() -> None:
    bill = {"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"name": "without type"}]}
    assert "'type' is a required property" in validate(json.dumps(bill))
