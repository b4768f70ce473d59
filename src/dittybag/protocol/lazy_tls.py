"""asyncio, with TLS left out until somebody uses it.

Importing asyncio loads OpenSSL: a tenth of a server's start and a fifth of its memory, for something that a
server on pipes never does. The two modules concerned are loaded on first use instead, so that TLS works as
ever where it is used. Nothing of this happens if asyncio has been imported before.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """Stands for a module until something in it is used."""

    def __getattr__(self, name: str) -> Any:
        module = import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


_lazy_names = [] if "asyncio" in sys.modules or "ssl" in sys.modules else ["ssl", "asyncio.sslproto"]
for _name in _lazy_names:
    sys.modules[_name] = _LazyModule(_name)

import asyncio  # noqa: E402  # after the lines above, which is the point

# asyncio has its stand-ins now; everybody else shall get the real modules.
for _name in _lazy_names:
    del sys.modules[_name]

__all__ = ["asyncio"]
