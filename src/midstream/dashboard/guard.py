"""What holds for every request to the dashboard: which are refused unseen, and the headers of all answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from midstream.dashboard.failure import failure
from midstream.dashboard.safety import HEADERS, Access

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


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
