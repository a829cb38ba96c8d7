"""A folder with one subfolder a step, each put in place at once and only once.

Tasks write into `_staging/step=N`, which readers of the folder pass over. When the step has been committed, the files
that its manifest lists are gathered and the gathering is renamed to `step=N`. Whatever interrupts this, doing it
again ends it.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from dataclasses import dataclass

from midstream.model.errors import SinkError
from midstream.state.store.disk import cannot_write, names_in

STAGING = "_staging"
_STEP = re.compile(r"step=(\d+)")


@dataclass(frozen=True)
class Staged:
    """A folder of steps."""

    path: str

    def staging(self, step: int) -> str:
        """The folder that the tasks of a step write into; the first of them makes it."""
        return f"{self.path}/{STAGING}/step={step:08d}"

    def publish(self, step: int, files: Iterable[str]) -> None:
        """Put the step's files in place; files of other attempts are thrown away. May be called again."""
        final, ready = self.final(step), f"{self.staging(step)}.ready"
        try:
            if not os.path.isdir(final):
                os.makedirs(ready, exist_ok=True)
                for file in files:
                    self._gather(step, ready, file)
                os.rename(ready, final)
        except OSError as error:
            raise cannot_write(error, final) from error
        self.discard(step)

    def discard(self, step: int) -> None:
        """Throw away what is left of a step's staging."""
        for folder in (self.staging(step), f"{self.staging(step)}.ready"):
            if os.path.isdir(folder):
                shutil.rmtree(folder, ignore_errors=True)

    def final(self, step: int) -> str:
        """The folder of a step that has been put in place."""
        return f"{self.path}/step={step:08d}"

    def staged(self, step: int, files: Iterable[str]) -> list[str]:
        """The paths of a step's files where the tasks wrote them."""
        return [f"{self.staging(step)}/{file}" for file in files]

    def steps(self) -> list[int]:
        """The steps in place."""
        return sorted(int(match[1]) for name in names_in(self.path) if (match := _STEP.fullmatch(name)))

    def forget_after(self, step: int) -> None:
        """Remove the steps after one, when a job goes back to it; they will be done again."""
        for later in self.steps():
            if later > step:
                shutil.rmtree(self.final(later))

    def _gather(self, step: int, ready: str, file: str) -> None:
        source, target = f"{self.staging(step)}/{file}", f"{ready}/{file}"
        try:
            os.rename(source, target)
        except FileNotFoundError:
            if not os.path.exists(target):  # An interrupted call may have moved it.
                raise SinkError(
                    f"the results of step {step} are gone",
                    place=source,
                    remedy="go back to an older manifest and let the step be done again",
                ) from None
