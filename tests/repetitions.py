"""How often tests repeat what depends on chance or on a moment.

`make test` repeats it often enough to notice the bugs that such a test is for. `make torture` sets
`TORTURE=1`, which repeats it much more often. `TORTURE_SEED` chooses other random numbers.
"""

from __future__ import annotations

import os
from typing import Final

SEED: Final = int(os.environ.get("TORTURE_SEED", "20261115"))

IS_FULL: Final = os.environ.get("TORTURE") == "1"


def repetitions(usual: int, full: int) -> int:
    """Return the number for `make test` or for `make torture`."""
    return full if IS_FULL else usual
