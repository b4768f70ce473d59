"""How much memory another process of this user uses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

#: `struct rusage_info_v0` of macOS, as 64-bit integers: a UUID, then ten numbers.
_RUSAGE_INFO_V0: Final = 0
_INTEGERS: Final = 12
_FOOTPRINT: Final = 9


def memory_of(pid: int) -> int | None:
    """Return the bytes of memory of a process; `None` if the system does not say."""
    if str(sys.platform) == "darwin":
        return _footprint(pid, _load_proc_pid_rusage())
    from resource import getpagesize

    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # pathlib is slow to import
            return int(file.read().split()[1]) * getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def _load_proc_pid_rusage() -> Callable[..., int]:
    import ctypes

    function: Any = ctypes.CDLL(None).proc_pid_rusage
    return function  # type: ignore[no-any-return]


def _footprint(pid: int, proc_pid_rusage: Callable[..., int]) -> int | None:
    """Return what macOS counts as the memory of a process, also that which is compressed or swapped out."""
    import ctypes

    info = (ctypes.c_uint64 * _INTEGERS)()
    status = proc_pid_rusage(ctypes.c_int(pid), ctypes.c_int(_RUSAGE_INFO_V0), ctypes.byref(info))
    return int(info[_FOOTPRINT]) if status == 0 else None
