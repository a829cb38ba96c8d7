"""The dashboard's server: in a thread of a program that goes on, or until it is interrupted."""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from midstream.checkpoint.reader import Checkpoint
from midstream.dashboard.app import application
from midstream.dashboard.safety import Access, access
from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.extras import from_extra
from midstream.storage.places import Place

if TYPE_CHECKING:
    import uvicorn


PORT = 8765


class Dashboard:
    """Serve a dashboard over one or more checkpoints; `close` it, or use it as a context manager.

    A job may write its checkpoint later. The dashboard listens as soon as the object exists. `url` is the address to
    open: with control it ends in the token.
    """

    def __init__(self, places: Sequence[Place], access: Access, port: int = PORT) -> None:
        with from_extra("dashboard", "dashboard"):
            import uvicorn

        app = application([Checkpoint.expected(place) for place in places], access)
        self._access, self._socket = access, _listening(access.host, port)
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(app, log_level="warning", access_log=False, ws="none", server_header=False)
        self._server: uvicorn.Server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the page."""
        host = f"[{self._access.host}]" if ":" in self._access.host else self._access.host
        secret = f"#token={self._access.token}" if self._access.token is not None else ""
        return f"http://{host}:{self.port}/{secret}"

    def run(self) -> None:
        """Serve until the process is interrupted."""
        self._server.run(sockets=[self._socket])

    def start(self) -> Self:
        """Serve in a thread that does not keep the process alive; further calls do nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self.run, name="midstream-dashboard", daemon=True)
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        from html import escape

        return f'<a href="{escape(self.url)}" target="_blank" rel="noopener">{escape(self.url)}</a>'

    def __repr__(self) -> str:
        return f"<dashboard at {self.url}>"


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except (OSError, OverflowError, TypeError) as error:
        listener.close()
        raise MidstreamError(
            f"cannot listen: {getattr(error, 'strerror', None) or error}",
            place=f"{host} port {port}",
            remedy="name another port with --port, or 0 for any free port",
        ) from error
    return listener


class ShowsDashboard(ABC):
    """A job that can be looked at while it runs; it has a checkpoint, or none yet."""

    def dashboard(
        self, host: str = "127.0.0.1", port: int = PORT, *, control: bool = False, token: str | None = None
    ) -> Dashboard:
        """Serve a page that shows how the queries stand until the returned dashboard is closed; `url` is its address.

        It reads the checkpoint from a thread of this process. With `control`, anybody with the token, which is in the
        address, may give commands; the next step takes them. `port` 0 is any that is free. Raises `CheckpointError`
        where there is no checkpoint.
        """
        place = self._checkpoint_url()
        if place is None:
            raise CheckpointError(
                "an engine in memory has no checkpoint to show",
                place="dashboard",
                remedy="make the engine with Engine(checkpoint=...), or save it and run: midstream dashboard PATH",
            )
        return Dashboard([place], access(host, control=control, token=token), port).start()

    @abstractmethod
    def _checkpoint_url(self) -> str | None:
        """Return where the checkpoint is; None if there is none."""
