"""asyncio with lazily loaded TLS.

Importing asyncio loads OpenSSL, which takes a tenth of a server's start-up time and a fifth of its memory. A
stdio server never uses it, so the modules `ssl` and `asyncio.sslproto` are loaded on first use instead. This
has no effect if asyncio is already imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """A placeholder that loads its module on first attribute access."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


_lazy_names = [] if "asyncio" in sys.modules or "ssl" in sys.modules else ["ssl", "asyncio.sslproto"]
for _name in _lazy_names:
    sys.modules[_name] = _LazyModule(_name)

import asyncio  # noqa: E402  # must come after the placeholders are installed

# asyncio now refers to the placeholders; later imports elsewhere get the real modules.
for _name in _lazy_names:
    del sys.modules[_name]

__all__ = ["asyncio"]
