"""What every test needs: a machine on which nobody keeps anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _nobodys_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The prompts and libraries of whoever runs the tests are not seen by them, nor touched."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SATCHEL_HOME", str(tmp_path_factory.mktemp("satchel")))
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        for variable in ("SATCHEL_PROFILE", "SATCHEL_PROJECT", "SATCHEL_DATABASE_URL", "TWIG_DATA_DIR"):
            patch.delenv(variable, raising=False)
        yield
