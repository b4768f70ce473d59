"""Extensions: methods beyond those of the revisions, declared in every revision."""

from __future__ import annotations

from typing import Any

import pytest

from dittybag.protocol.eras.versions import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSIONS,
    V2025_06_18,
    V2025_11_25,
    V2026_07_28,
    VERSIONS,
)
from dittybag.protocol.extensions import Extension, ExtensionMethod
from dittybag.protocol.features import ResourceDefinition, slice_page
from dittybag.protocol.method_handlers import list_page, required_string
from dittybag.protocol.request_context import Context
from dittybag.protocol.server import Server
from dittybag.protocol.types import Capabilities, Result, ToolResult
from tests.protocol.memory_client import MemoryClient

WEATHER = "org.example/weather"


class Forecast(Result, frozen=True, kw_only=True):
    city: str


class Cities(Result, frozen=True, kw_only=True):
    cities: tuple[str, ...]
    next_cursor: str | None = None


def forecast(ctx: Context) -> Forecast:
    return Forecast(city=required_string(ctx, "city"))


async def later(ctx: Context) -> Forecast:
    return Forecast(city="later")


def cities(ctx: Context) -> Any:
    return list_page(
        ctx, None, lambda position, _: slice_page(("a", "b", "c"), position, 2), Cities, "cities"
    )


METHODS = (
    ExtensionMethod(name="weather/forecast", handle=forecast, reads=True),
    ExtensionMethod(name="weather/later", handle=later),
    ExtensionMethod(name="weather/cities", handle=cities, cacheable=True),
    ExtensionMethod(name="weather/radar", handle=forecast, since=V2025_11_25),
    ExtensionMethod(name="weather/maps", handle=forecast, capability="resources"),
)


def weather_server(**options: Any) -> Server:
    server = Server("weather", "1", **options)
    server.add_extension(Extension(identifier=WEATHER, settings={"radar": True}, methods=METHODS))
    return server


async def declared(server: Server, version: str) -> Any:
    async with MemoryClient(server, version) as client:
        method = "server/discover" if version in STATELESS_VERSIONS else "initialize"
        return (await client.request(method, {"protocolVersion": version}))["capabilities"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_extension_is_declared_and_works_in_every_revision(version: str) -> None:
    assert (await declared(weather_server(), version))["extensions"] == {WEATHER: {"radar": True}}
    async with MemoryClient(weather_server(), version) as client:
        assert (await client.request("weather/forecast", {"city": "Oslo"}))["city"] == "Oslo"
        assert (await client.request("weather/later"))["city"] == "later"


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_server_without_extensions_declares_none(version: str) -> None:
    server = Server("plain", "1")
    assert "extensions" not in await declared(server, version)
    async with MemoryClient(server, version) as client:
        assert (await client.error("weather/forecast"))["code"] == -32601


async def test_an_extension_is_added_to_the_declared_capabilities() -> None:
    server = weather_server(capabilities=Capabilities(completions={}, extensions={"org.example/tides": {}}))
    found = await declared(server, V2026_07_28)
    assert found == {"completions": {}, "extensions": {"org.example/tides": {}, WEATHER: {"radar": True}}}


async def test_an_extension_is_still_declared_after_a_change_of_the_tools() -> None:
    server = weather_server()

    @server.tool("hello")
    def hello(arguments: Any, ctx: Context) -> ToolResult:
        return ToolResult.from_text("hello")

    found = await declared(server, V2025_11_25)
    assert found.keys() == {"tools", "extensions"}


@pytest.mark.parametrize("version", VERSIONS)
async def test_pages_of_an_extension_carry_what_the_revision_adds_to_lists(version: str) -> None:
    async with MemoryClient(weather_server(), version) as client:
        first = await client.request("weather/cities")
        rest = await client.request("weather/cities", {"cursor": first["nextCursor"]})
        assert (first["cities"], rest["cities"]) == (["a", "b"], ["c"])
        assert "nextCursor" not in rest
        assert (first.get("ttlMs"), first.get("cacheScope"), first.get("resultType")) == (
            (0, "private", "complete") if version in STATELESS_VERSIONS else (None, None, None)
        )
        assert "ttlMs" not in await client.request("weather/forecast", {"city": "Oslo"})
        assert (await client.error("weather/cities", {"cursor": "x"}))["code"] == -32602


async def test_a_method_of_an_extension_can_begin_with_a_revision() -> None:
    for version in VERSIONS:
        async with MemoryClient(weather_server(), version) as client:
            found = await client.exchange("weather/radar", {"city": "Oslo"})
        assert ("result" in found) == (version >= V2025_11_25)


async def test_a_method_of_an_extension_can_need_a_capability() -> None:
    server = weather_server()
    async with MemoryClient(server, V2025_06_18) as client:
        assert (await client.error("weather/maps", {"city": "Oslo"}))["code"] == -32601
        server.add(ResourceDefinition(uri="map://oslo", name="oslo", read=lambda ctx: "map"))
        assert (await client.request("weather/maps", {"city": "Oslo"}))["city"] == "Oslo"


async def test_bad_parameters_of_an_extension_are_reported() -> None:
    async with MemoryClient(weather_server(), HANDSHAKE_VERSIONS[0]) as client:
        error = await client.error("weather/forecast", {"city": 7})
    assert error["code"] == -32602
    assert "city" in error["message"]


@pytest.mark.parametrize("name", ["tools/list", "initialize", "weather/forecast"])
def test_a_method_cannot_be_replaced(name: str) -> None:
    server = weather_server()
    with pytest.raises(ValueError, match=name):
        server.add_extension(
            Extension(identifier="org.example/other", methods=(ExtensionMethod(name=name, handle=forecast),))
        )
