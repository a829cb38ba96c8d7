"""Keep the durations of a job's steps next to its events, for people and monitoring; no step reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from midstream.model.codec import decode, encode
from midstream.model.errors import MidstreamError
from midstream.model.step_time import StepTime, StepUnderWay
from midstream.model.time_line import TimeLine
from midstream.storage.storage_contract import Storage

TIMES_KEPT = 500
"""Steps of which a job remembers the times, and of which an epoch's file has them."""

_EPOCHS_KEPT = 4
_UNDER_WAY = "under_way"
_FILE = re.compile(r"(\d+)\.jsonl")


class TimeLog:
    """The times of a job's newest steps: one small file an epoch, written again as a whole now and then.

    A driver writes its own epoch's file alone, so none that has lost the checkpoint disturbs another. What is not
    written when a driver is killed is missing, and nothing else is; a file that does not read counts as missing.

    >>> from tempfile import TemporaryDirectory
    >>> from midstream.storage.local import LocalStorage
    >>> with TemporaryDirectory() as folder:
    ...     log = TimeLog(LocalStorage(folder))
    ...     log.write(0, [text_of(StepTime(7, ended=100.0, seconds=0.5))])
    ...     [time.step for time in log.newest(TimeLine("j"), last=7, count=10)]
    [7]
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(self, epoch: int, lines: Sequence[str], under_way: StepUnderWay | None = None) -> None:
        """Replace an epoch's file; the step `under_way` becomes its last line."""
        last = "" if under_way is None else json.dumps({_UNDER_WAY: encode(under_way)}) + "\n"
        self._storage.write(f"{epoch:06d}.jsonl", ("".join(lines) + last).encode())

    def under_way(self, after: int) -> StepUnderWay | None:
        """Read the step of the newest epoch that had begun and not ended when its file was written. None up to `after`.

        A driver that was killed leaves it there.
        """
        values = self._values(max(self._epochs(), default=-1))
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            found = decode(StepUnderWay, values[-1][_UNDER_WAY]) if values else None
            return found if found is not None and found.step > after else None
        return None

    def tidy(self, epoch: int) -> None:
        """Remove the files of old epochs."""
        kept = sorted(number for number in self._epochs() if number < epoch)[: -_EPOCHS_KEPT + 1]
        self._storage.remove(f"{number:06d}.jsonl" for number in kept)

    def newest(self, line: TimeLine, last: int, count: int) -> tuple[StepTime, ...]:
        """Read the times of the last `count` steps up to `last` whose times are known, each once, oldest first."""
        found: dict[int, StepTime] = {}
        for epoch in sorted(self._epochs(), reverse=True):
            if len(found) >= count:
                break
            # What a driver did that went back, or had lost the checkpoint, is not the job's step of that number.
            times = {one.step: one for one in self._read(epoch) if one.step <= last and _counts(line, epoch, one.step)}
            found = times | found
        return tuple(found[step] for step in sorted(found)[-count:]) if count > 0 else ()

    def version(self) -> str:
        """Return a text that changes when times are written; costs the listing of a folder."""
        return ",".join(f"{name}@{changed}" for changed, name in sorted(self._storage.changed()))

    def _read(self, epoch: int) -> list[StepTime]:
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            return [decode(StepTime, one) for one in self._values(epoch) if _UNDER_WAY not in one]
        return []

    def _values(self, epoch: int) -> list[Any]:
        with suppress(MidstreamError, FileNotFoundError, ValueError):
            text = self._storage.read(f"{epoch:06d}.jsonl").to_pybytes().decode()
            return [json.loads(one) for one in text.splitlines()]
        return []

    def _epochs(self) -> list[int]:
        return [int(found[1]) for name in self._storage.names() if (found := _FILE.fullmatch(name))]


def text_of(time: StepTime) -> str:
    """Encode a step's times as a line of the file."""
    return json.dumps(encode(time)) + "\n"


def _counts(line: TimeLine, epoch: int, step: int) -> bool:
    found = line.epoch_of(step)
    return found is None or found.number == epoch
