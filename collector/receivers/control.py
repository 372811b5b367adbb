"""POST /control/ORDER: the door for what changes the store by order. Only who bears the key of the data directory comes in."""

import json
from typing import Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from collector.acceptance import AcceptanceError
from collector.control.giving import CONTROL_PATH, STATUS_BY_EXIT_CODE
from collector.control.key import fits
from collector.control.orders import Orders
from collector.errors import CollectorError
from collector.receivers.http_body import read_body

_BODY_BYTES_MAX: Final = 64 * 1024


class ControlReceiver:
    """Answers `{"done": …}` once an order is carried out, and otherwise `{"error": line}`."""

    def __init__(self, orders: Orders, key: str) -> None:
        self._orders = orders
        self._key = key
        self.routes = [Route(f"{CONTROL_PATH}/{{order:path}}", self._take, methods=["POST"])]

    async def _take(self, request: Request) -> Response:
        if not fits(self._key, request.headers.get("authorization", "")):
            return JSONResponse({"error": "the key in the collector's data directory is needed"}, 401)
        try:
            values = dict(json.loads(await read_body(request.stream(), _BODY_BYTES_MAX)))
        except (ValueError, TypeError, AcceptanceError) as error:
            return JSONResponse({"error": f"an order's values are a JSON object: {error}"}, 400)
        try:
            done = await run_in_threadpool(self._orders.carry_out, request.path_params["order"], values)
        except CollectorError as error:
            return JSONResponse({"error": str(error)}, STATUS_BY_EXIT_CODE.get(error.exit_code, 409))
        return JSONResponse({"done": done})
