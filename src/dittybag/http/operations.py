"""Paths for the people who run the server: /healthz, /readyz and /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

from dittybag import __version__
from dittybag.contracts.tool_specs import ServerScope
from dittybag.domain.errors import DittybagError
from dittybag.domain.ports import ReplicaStatus
from dittybag.http.endpoint import HttpEndpoint
from dittybag.http.http_request import HttpRequest
from dittybag.http.metrics import Metrics, label
from dittybag.protocol.jsonrpc import encode

#: A load balancer that asks each second gets each answer before it asks again.
_READINESS_SECONDS: Final = 0.9


class Operations:
    """Responds with the state of the server."""

    def __init__(
        self, server_scope: ServerScope, metrics: Metrics, endpoints: Collection[HttpEndpoint]
    ) -> None:
        self._server_scope = server_scope
        self._metrics = metrics
        self._endpoints = endpoints

    async def health(self, request: HttpRequest) -> None:
        await request.respond(200, encode({"status": "ok", "version": __version__}))

    async def readiness(self, request: HttpRequest) -> None:
        problem = await self._find_problem()
        if problem is None:
            await request.respond(200, encode({"status": "ready"}))
        else:
            await request.respond(503, encode({"status": "not ready", "problem": problem}))

    async def _find_problem(self) -> str | None:
        # A timeout needs a task. A handler starts without one, and continues in one after it has suspended.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(_READINESS_SECONDS):
                await self._server_scope.workspace.store.check()
        except TimeoutError:
            return f"The database did not answer within {_READINESS_SECONDS} seconds"
        except DittybagError as error:
            return str(error)
        return None

    async def metrics(self, request: HttpRequest) -> None:
        stored = {f'kind="{kind}"': count for kind, count in (await self._count_entities()).items()}
        streams = sum(endpoint.streams for endpoint in self._endpoints)
        sessions = sum(endpoint.sessions for endpoint in self._endpoints)
        text = self._metrics.text(
            {
                "dittybag_stored": ("Stored entities by kind.", stored),
                "dittybag_open_streams": ("Open event streams.", {"": streams}),
                "dittybag_open_sessions": ("Open sessions on this server.", {"": sessions}),
                "dittybag_renderer_restarts_total": (
                    "Restarts of template worker processes.",
                    {"": self._server_scope.templates.restarts},
                ),
                **_replica_gauges(self._server_scope.workspace.store.replicas()),
            }
        )
        await request.respond(200, text.encode(), media_type=b"text/plain; version=0.0.4")

    async def _count_entities(self) -> dict[str, int]:
        """The number of entities by kind; empty if the store cannot be read."""
        workspace = self._server_scope.workspace
        try:
            sizes = await workspace.projects.all()
            tasks = await workspace.tasks.count_all()
        except DittybagError:
            return {}
        return {
            "projects": len(sizes),
            "prompts": sum(size.prompts for size in sizes),
            "resources": sum(size.resources for size in sizes),
            "tasks": tasks,
        }


def _replica_gauges(replicas: Sequence[ReplicaStatus]) -> dict[str, tuple[str, dict[str, int]]]:
    """The gauges of the read replicas, if there are any."""
    if not replicas:
        return {}
    used = {label("replica", replica.url): int(replica.is_used) for replica in replicas}
    lags = {label("replica", replica.url): replica.lag for replica in replicas}
    return {
        "dittybag_replica_used": ("Whether a read replica is used.", used),
        "dittybag_replica_lag_changes": ("Changes that a replica lacked when it was last asked.", lags),
    }
