"""The dashboard as a web application: its routes, and what is computed once for many requests.

A guard holds for every request: it refuses those that name another host, and sets the headers of all answers. An error
is answered as an object with `error`, `place` and `remedy`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.api import Api
from midstream.dashboard.safety import HEADERS, READ_ONLY, TOKEN_HEADER, Access, is_loopback
from midstream.explain.prometheus import CONTENT_TYPE, Measured, exposition
from midstream.model.errors import MidstreamError, NoCheckpointError, QueryError, ReadError
from midstream.model.extras import from_extra

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


STATIC = Path(__file__).parent / "static"
LARGEST_COMMAND = 1 << 20
"""Bytes of a command."""


def application(checkpoints: Sequence[Checkpoint], access: Access) -> Starlette:
    """Build the application over these checkpoints.

    | address | answer |
    |---|---|
    | `GET /` and `/static/...` | the page |
    | `GET /api/checkpoints` | `Api.checkpoints` |
    | `GET /api/jobs` | `Api.jobs` |
    | `GET /api/{index}?step=` | `Api.overview` |
    | `GET /api/{index}/views/{name}?query=&step=` | `Api.view` |
    | `GET /metrics` | the jobs for Prometheus; a label `checkpoint` tells several apart |
    | `POST /api/{index}/commands` | `Api.send`; the token is in a header |
    | `GET /api/{index}/commands/{id}?since=` | `Api.outcome` |
    | `POST /api/{index}/trial` | `Api.attempt`, an error as its value; where others reach the page, with the token |

    What changes only as steps are done has an ETag: asked again with it, 304 and nothing is computed. An error is an
    object with `error`, `place` and `remedy`.
    """
    with from_extra("dashboard", "dashboard"):
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.middleware import Middleware
        from starlette.responses import FileResponse, JSONResponse, Response
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles

    api = Api(checkpoints, control=access.token is not None)

    async def page(request: Request) -> Response:
        return FileResponse(STATIC / "index.html")

    async def listed(request: Request) -> Response:
        return JSONResponse(api.checkpoints())

    async def jobs(request: Request) -> Response:
        return JSONResponse(await run_in_threadpool(api.jobs), headers={"Cache-Control": "no-store"})

    async def overview(request: Request) -> Response:
        index = _number(request, "index")
        return await unless_known(request, index, partial(api.overview, index, dict(request.query_params)))

    async def view(request: Request) -> Response:
        index, name = _number(request, "index"), request.path_params["name"]
        return await unless_known(request, index, partial(api.view, index, name, dict(request.query_params)), name)

    async def unless_known(
        request: Request, index: int, answer: Callable[[], Any], view: str | None = None
    ) -> Response:
        # A browser that has the answer already gets no body.
        version = await run_in_threadpool(api.version, index, dict(request.query_params), view)
        headers = {"ETag": f'"{version}"', "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        body = await run_in_threadpool(lambda: json.dumps(answer(), default=str).encode())
        return Response(body, media_type="application/json", headers=headers)

    async def metrics(request: Request) -> Response:
        text = await run_in_threadpool(metrics_of, checkpoints)
        return Response(text, headers={"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"})

    async def send(request: Request) -> Response:
        if (refusal := _refused(request, access)) is not None:
            return refusal
        value = json.loads(await request.body())
        return JSONResponse(await run_in_threadpool(api.send, _number(request, "index"), value), status_code=201)

    async def trial(request: Request) -> Response:
        refusal = _too_long(request) if is_loopback(access.host) else _refused(request, access)
        if refusal is not None:
            return refusal
        value = json.loads(await request.body())
        try:
            found = await run_in_threadpool(api.attempt, _number(request, "index"), value)
        except MidstreamError as error:  # While somebody types, that is not a failure of the page.
            found = {"error": error.message, "place": error.place, "remedy": error.remedy}
        return Response(json.dumps(found, default=str).encode(), media_type="application/json")

    async def outcome(request: Request) -> Response:
        since = int(request.query_params.get("since", -1))
        found = await run_in_threadpool(api.outcome, _number(request, "index"), _number(request, "id"), since)
        return JSONResponse(found, headers={"Cache-Control": "no-store"})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/metrics", metrics),
            Route("/api/checkpoints", listed),
            Route("/api/jobs", jobs),
            Route("/api/{index:int}", overview),
            Route("/api/{index:int}/views/{name}", view),
            Route("/api/{index:int}/commands", send, methods=["POST"]),
            Route("/api/{index:int}/commands/{id:int}", outcome),
            Route("/api/{index:int}/trial", trial, methods=["POST"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, access=access)],
        exception_handlers={MidstreamError: failed, ValueError: failed},
    )


def _refused(request: Request, access: Access) -> Response | None:
    # None for a command that is to be looked at.
    if access.token is None:
        return failure(403, "control is off", "", READ_ONLY)
    if not access.controls(request.headers.get(TOKEN_HEADER, "")):
        return failure(403, "the token is wrong", TOKEN_HEADER, "open the address that the dashboard printed")
    return _too_long(request)


def _too_long(request: Request) -> Response | None:
    if int(request.headers.get("content-length") or LARGEST_COMMAND + 1) > LARGEST_COMMAND:
        return failure(413, "the command is too long", "", "shorten it")
    return None


def _number(request: Request, name: str) -> int:
    number = request.path_params[name]
    if not isinstance(number, int):
        raise QueryError(f"{number!r} is not a number", place=name, remedy="use a number")
    return number


async def failed(request: Request, error: Exception) -> Response:
    """Answer a request that raised an error: 404, 503 or 400."""
    if isinstance(error, MidstreamError):
        status = 404 if isinstance(error, NoCheckpointError) else 503 if isinstance(error, ReadError) else 400
        return failure(status, error.message, error.place, error.remedy)
    return failure(400, f"the request cannot be read: {error}", str(request.url.path), "reload the page")


def failure(status: int, message: str, place: str, remedy: str) -> Response:
    """Make an answer of this status."""
    from starlette.responses import JSONResponse

    return JSONResponse({"error": message, "place": place, "remedy": remedy}, status_code=status)


class Guard:
    """Refuses requests that name another host, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        given = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = given.get(b"host", ""), given.get(b"origin")
        app: Callable[[Scope, Receive, Send], Awaitable[None]] = self._app
        if not self._access.permits(host):
            app = failure(421, f"this is not {host!r}", "Host", "use its address, or name it with --allow-host")
        elif origin is not None and origin.partition("://")[2] != host:
            app = failure(403, f"a page of {origin!r} asks", "Origin", "open the dashboard's own page")
        await app(scope, receive, guarded)


def metrics_of(checkpoints: Sequence[Checkpoint]) -> str:
    """Measure the jobs for Prometheus; several have a label `checkpoint` each, and one that does not read is left out.

    Costs what `midstream metrics` does, each time it is asked.
    """
    found = list[Measured]()
    for checkpoint in checkpoints:
        with suppress(MidstreamError, FileNotFoundError):
            labels = {"checkpoint": checkpoint.url} if len(checkpoints) > 1 else {}
            found.append(Measured(checkpoint.report(), checkpoint.step_times(), labels))
    return exposition(found)
