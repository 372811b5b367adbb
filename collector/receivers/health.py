"""The collector's own state on its HTTP port: /healthz (alive), /readyz (storing), /metrics and /state."""

import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from typing import Any, Final

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.access.access import is_loopback
from collector.telemetry.health import Health
from collector.telemetry.metrics import CollectorMetrics

HEALTH_PATHS: Final = frozenset({"/healthz", "/readyz", "/metrics", "/state"})
"""Answered however many connections there are."""


class HealthReceiver:
    """/healthz answers 200 as long as it answers at all: a supervisor restarts what does not. /readyz answers 200
    while executions reach ClickHouse and otherwise 503 with the reasons, by part: what a person is to look at.
    /state is `collector.telemetry.state`, for `tachograph doctor` and the rules of alerts; where the data lies, which
    `tachograph alerts silence` has to know, is told to this machine only."""

    def __init__(
        self, health: Health, metrics: CollectorMetrics, state: Callable[[], Mapping[str, Any]] | None = None
    ) -> None:
        self._health = health
        self._metrics = metrics
        self._state = state or dict
        self._began = time.monotonic()
        self.routes = [
            Route("/healthz", self._alive),
            Route("/readyz", self._storing),
            Route("/metrics", self._exposition),
            Route("/state", self._told),
        ]

    async def _alive(self, _: Request) -> Response:
        uptime_s = round(time.monotonic() - self._began, 1)
        return JSONResponse({"status": "alive", "version": version("tachograph"), "uptime_s": uptime_s})

    async def _storing(self, _: Request) -> Response:
        troubles = await run_in_threadpool(self._health.troubles)
        if troubles:
            return JSONResponse({"status": "not storing", "reasons": troubles}, 503, {"Retry-After": "1"})
        return JSONResponse({"status": "storing"})

    async def _exposition(self, _: Request) -> Response:
        return Response(await run_in_threadpool(self._metrics.exposition), media_type=CONTENT_TYPE_LATEST)

    async def _told(self, request: Request) -> Response:
        told = dict(await run_in_threadpool(self._state))
        if not (request.client and is_loopback(request.client.host)):
            told.pop("data_dir", None)
        return JSONResponse(told)
