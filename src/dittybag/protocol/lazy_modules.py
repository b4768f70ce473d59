"""Modules that libraries import and rarely use: loaded on first use, because imports are most of a start."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class _LazyModule(ModuleType):
    """A placeholder that loads its module on first attribute access."""

    def __getattr__(self, name: str) -> Any:
        from importlib import import_module

        _remove(self)
        module = import_module(self.__name__)
        self.__dict__.update(module.__dict__)
        return getattr(module, name)


@contextmanager
def placeholders(*names: str, **known: Mapping[str, Any]) -> Iterator[None]:
    """Import placeholders instead of these modules, unless they are already loaded.

    What is imported meanwhile keeps the placeholders; later imports elsewhere get the real modules.
    `known`: modules with the attributes that are used meanwhile. Later uses get those of the real module.
    """
    lazy = [_LazyModule(name) for name in (*names, *known) if name not in sys.modules]
    for module in lazy:
        sys.modules[module.__name__] = module
        module.__dict__.update(known.get(module.__name__, {}))
    try:
        yield
    finally:
        for module in lazy:
            _remove(module)
            for name in known.get(module.__name__, ()):
                delattr(module, name)


def _remove(placeholder: ModuleType) -> None:
    """Let the next import load the real module."""
    if sys.modules.get(placeholder.__name__) is placeholder:
        del sys.modules[placeholder.__name__]
