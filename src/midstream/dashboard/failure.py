"""Errors as answers of the dashboard: an object with `error`, `place` and `remedy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from midstream.model.errors import MidstreamError, NoCheckpointError, ReadError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response


async def failed(request: Request, error: Exception) -> Response:
    """Answer a request that raised an error: 404, 503 or 400."""
    if isinstance(error, MidstreamError):
        status = 404 if isinstance(error, NoCheckpointError) else 503 if isinstance(error, ReadError) else 400
        return failure(status, error.message, error.place, error.remedy)
    return failure(400, f"the request does not read: {error}", str(request.url.path), "reload the page")


def failure(status: int, message: str, place: str, remedy: str) -> Response:
    """Make an answer of this status."""
    from starlette.responses import JSONResponse

    return JSONResponse({"error": message, "place": place, "remedy": remedy}, status_code=status)
