"""A dashboard beside what a program does: the method that an engine and a running job have for it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from midstream.dashboard.safety import access
from midstream.dashboard.server import PORT, Dashboard
from midstream.model.errors import CheckpointError


class DashboardBeside(ABC):
    """What has a checkpoint, or may have one, and can be looked at while it goes on."""

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
                remedy="make it with Engine(checkpoint=...), or save it and run: midstream dashboard PATH",
            )
        return Dashboard([place], access(host, control=control, token=token), port).start()

    @abstractmethod
    def _checkpoint_url(self) -> str | None:
        """Return where the checkpoint is; None if there is none."""
