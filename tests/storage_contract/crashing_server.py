"""A Dittybag server that is killed after it executed a call with a key and before it responds."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from dittybag.__main__ import main
from dittybag.services.idempotency_service import IdempotencyService


async def _die(*_: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    assert hasattr(IdempotencyService, "save_result")
    IdempotencyService.save_result = _die  # type: ignore[method-assign, assignment]
    sys.exit(main())
