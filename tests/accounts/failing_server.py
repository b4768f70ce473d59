"""Dittybag in which `task_get` always fails, with an internal or a storage error."""

from __future__ import annotations

import sys
from typing import Any

from dittybag.__main__ import main
from dittybag.domain.errors import StorageBusy
from dittybag.services.task_service import TaskService


async def _fail(self: TaskService, caller: Any, id: int) -> Any:
    if id == 1:
        raise RuntimeError("a secret detail")
    raise StorageBusy("nowhere")


if __name__ == "__main__":
    assert hasattr(TaskService, "get")
    TaskService.get = _fail
    sys.exit(main())
