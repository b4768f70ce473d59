"""Extensions of the protocol: methods that a server offers beyond those of its revisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from dittybag.protocol.eras.method_table import METHODS, Method
from dittybag.protocol.eras.versions import VERSIONS
from dittybag.protocol.request_context import Context
from dittybag.protocol.types import JsonObject


class ExtensionMethod(Method, frozen=True, kw_only=True):
    """A request method of an extension, with its handler."""

    #: Returns what the handlers of `method_handlers` return.
    handle: Callable[[Context], Any]


class Extension(Struct, frozen=True, kw_only=True):
    """An extension, which a server declares in its capabilities in every revision."""

    #: A reverse domain name and a name, such as `io.modelcontextprotocol/skills`.
    identifier: str
    settings: JsonObject = {}
    methods: tuple[ExtensionMethod, ...] = ()


class ExtensionRegistry:
    """The extensions of a server."""

    def __init__(self) -> None:
        #: The settings of each extension, as the capabilities declare them.
        self.settings: dict[str, JsonObject] = {}
        self._methods: dict[str, ExtensionMethod] = {}

    def add(self, extension: Extension) -> None:
        """Add an extension. Raises `ValueError` if another method has the name of one of its methods."""
        for method in extension.methods:
            if method.name in self._methods or any((method.name, version) in METHODS for version in VERSIONS):
                raise ValueError(f"there is already a method {method.name}")
            self._methods[method.name] = method
        self.settings[extension.identifier] = extension.settings

    def method(self, name: str, version: str) -> ExtensionMethod | None:
        """Return the method that an extension has in a revision, or `None`."""
        method = self._methods.get(name)
        return method if method is not None and method.since <= version <= method.until else None

    def reads(self, name: str) -> bool:
        """Return whether a method reads data that tools may write."""
        return name in self._methods and self._methods[name].reads
