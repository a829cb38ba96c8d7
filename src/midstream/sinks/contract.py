"""The contract of sinks: what a job requires of the place where a query's results go, and when.

A step's results are staged by its tasks, where no reader of the sink looks. Then the step's manifest is published, and
with that the step is done; only after that does the sink commit. If anything cuts this short, the restarted job
stages or commits again: so results are neither lost nor duplicated in a sink whose `commit` may be repeated.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, ClassVar, Self

import pyarrow as pa

from midstream.model.errors import ReadError, SinkError
from midstream.model.time_line import Stamp, TimeLine
from midstream.sinks import formats
from midstream.storage.storage_contract import Storage
from midstream.storage.unsynced import Unsynced

STAGING = "_staging"
"""The folder that steps are staged in; readers of files pass over names that begin so."""


@dataclass(frozen=True)
class Staging:
    """Place and format of the files that tasks write for a query's results."""

    storage: Storage
    format: str = "parquet"
    prefix: str = ""

    def of(self, stamp: Stamp) -> Staging:
        """Return the staging of one step.

        The names of the staged files contain the step's stamp, so no two drivers or steps write the same file.
        """
        return replace(self, storage=self.storage.at(staged_in(stamp)), prefix=stamp_prefix(stamp))

    def write(self, stem: str, table: pa.Table) -> str:
        """Write a table to a new file, and return the file's name.

        Tasks call this method. The method raises `SinkError` if it cannot write the file.
        """
        file = f"{self.prefix}{stem}.{self.format}"
        self.storage.write(file, formats.written(table, self.format))
        return file

    def synced_with(self, unsynced: Unsynced) -> Staging:
        """Return a staging that leaves its files to `unsynced`, which syncs them to the disk later."""
        return replace(self, storage=self.storage.synced_with(unsynced))

    def clear(self) -> None:
        """Remove all files of the staging, atomically for readers."""
        self.storage.remove_folder("")


def staged_in(stamp: Stamp) -> str:
    """Return the folder of a step in the staging folder."""
    return "/".join(filter(None, (stamp.epoch, f"step={stamp.step:08d}")))


def stamp_prefix(stamp: Stamp) -> str:
    """Return the beginning of the names of the files of a step.

    >>> stamp_prefix(Stamp("job", "1c0f", 12))
    'job~1c0f~'
    """
    return f"{stamp.job}~{stamp.epoch}~"


def step_of(folder: str) -> int:
    """Read the step from the name of a folder of `staged_in`; -1 for other names.

    >>> step_of("step=00000012"), step_of("step=00000012.ready")
    (12, 12)
    """
    found = re.match(r"step=(\d+)", folder)
    return int(found[1]) if found else -1


@dataclass(frozen=True)
class StagedStep:
    """Results that a step has staged for a sink.

    `name` is the query's name, and `files` are the files of successful attempts. `line` is the time line of the job,
    which shows whether a step in the sink is still valid. `tasks_ended` is true if no task of the job still writes
    staged files.
    """

    name: str
    step: int
    line: TimeLine
    staging: Staging
    files: tuple[str, ...]
    frames: Frames | None = field(default=None, compare=False)
    tasks_ended: bool = False

    @property
    def stamp(self) -> Stamp:
        """Return the stamp of the step's job and run; a sink records it with the results."""
        return self.line.stamp(self.step)

    @property
    def is_there(self) -> bool:
        """Check whether all staged files still exist. The files exist at least until the first call of `commit`."""
        return set(self.files) <= set(self.staging.storage.names())

    @property
    def is_partly_there(self) -> bool:
        """Return whether at least one of the staged files still exists.

        Raises `ReadError` if midstream cannot read the storage.
        """
        try:
            return not set(self.files).isdisjoint(self.staging.storage.names())
        except ReadError as error:
            if isinstance(error.__cause__, NotADirectoryError):  # Something else is where the folder was.
                return False
            raise

    def follows(self, newest: Stamp | None, place: str) -> bool:
        """Return True if the step follows the sink's newest step, and False if the sink already has the step.

        Raises `SinkError` if the sink has a later step, or a step of another time line. In both cases the step would
        make the sink lose or duplicate rows.
        """
        if newest in (self.stamp, Stamp("", "", self.step)):
            return False
        if newest is None or (newest.step < self.step and (not newest.job or self.line.has(newest))):
            return True
        raise SinkError(
            f"the sink's step {newest.step} of query {self.name!r} is not on the time line of the job's "
            f"step {self.step}",
            place=place,
            remedy="give the query a sink of its own, or restore this sink and the checkpoint from the same backup",
        )

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [self.staging.storage.place(file) for file in self.files]

    def table(self) -> pa.Table:
        """Read the staged Parquet or Arrow files as one Arrow table."""
        return pa.concat_tables([formats.read_back(self.staging.storage.read(file), file) for file in self.files])

    def frame(self) -> Any:
        """Read the results as a function sink gets them: an Arrow table, or a DataFrame on Spark."""
        return self.table() if self.frames is None else self.frames(self)


Frames = Callable[[StagedStep], Any]
"""Makes a step's results into the argument of a user's function, on a host where that is not an Arrow table."""


def anything(stamp: Stamp) -> bool:
    """Accept any stamp."""
    return True


class Sink(ABC):
    """Destination of the results of a query.

    midstream finds each class with a `name`, in this package and at entry points of the group `midstream.sinks`. A job
    file names the class with `type = "name"` in the sink's table; the other keys are its arguments.
    `midstream.testing.check_sink` tests a sink against this contract. A sink only has to define `write`:

    >>> class Printer(Sink):
    ...     name = "printer"
    ...     def write(self, staged):
    ...         print(staged.name, staged.step, staged.table().num_rows)
    """

    name: ClassVar[str]

    aside: ClassVar[bool] = False
    """Whether a thread may call `commit` while the next step is done; that step counts only once the call returned."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Make the sink that a job file or a manifest names, with its options."""
        try:
            return cls(**options)
        except TypeError as error:
            known = {name: one for name, one in signature(cls).parameters.items() if one.kind is not one.VAR_POSITIONAL}
            open_ended = any(one.kind is one.VAR_KEYWORD for one in known.values())
            unknown = [f"it has no option {name!r}" for name in options if name not in known and not open_ended]
            needed = (
                name for name, one in known.items() if one.default is one.empty and one.kind is not one.VAR_KEYWORD
            )
            missing = [f"it needs the option {name!r}" for name in needed if name not in options]
            raise SinkError(
                f"the sink {cls.name!r} cannot be made: {(*unknown, *missing, error)[0]}",
                place="sink",
                remedy=f"correct the sink's options; the possible options are: {', '.join(known)}",
            ) from error

    def to_json(self) -> dict[str, Any]:
        """Return how manifests and commands record the sink: its name, and the options for `of`."""
        return {"type": self.name, **vars(self)}

    @property
    def target(self) -> str:
        """The path or URL that only one query may write to; empty if several queries may write to the sink."""
        return ""

    def open(self) -> None:
        """Make the sink ready, or raise a `SinkError` if the sink cannot write results.

        midstream calls `open` on the driver before the first step of each run, perhaps more than once.
        """
        return

    def close(self) -> None:
        """Close connections when the job ends. If midstream uses the sink again, the sink connects again."""
        return

    def check(self, columns: pa.Schema | None) -> None:
        """Raise a `SinkError` if the sink cannot write results with these columns.

        `columns` is None if the columns are unknown. `midstream check` calls the method, even while a job writes to the
        sink, so the method must not change or disturb anything.
        """
        return

    def check_columns(self, columns: pa.Schema) -> None:
        """Raise a `SinkError` if the columns of the sink's table differ from the columns of the results.

        midstream calls the method on the driver after `open`, before it runs a step of the query. `write` must not
        refuse the columns of a committed step, because all later steps would wait.
        """
        return

    def staging(self, scratch: Storage) -> Staging:
        """Return the place and format for the tasks of all steps. Each step writes to its own folder below this place.

        midstream calls `staging` on the driver before a step's tasks, and again before the step's commit. Both calls
        must return the same place. By default, the place is in `scratch`, a folder of the checkpoint.
        """
        return Staging(scratch.at(STAGING))

    def commit(self, staged: StagedStep) -> None:
        """Put a step's results in place, so that readers see all of them at once.

        midstream calls `commit` on the driver for each step with results, in order of the steps. midstream publishes
        the manifest of the step before the call. If the job dies during the call or soon after the call, midstream
        repeats the call. In the second call `staged.is_there` is false if the first call already removed the files. If
        `staged.is_there` is true, `write` must find out what the first call has already written.
        """
        if staged.is_there:
            self.write(staged)

    @abstractmethod
    def write(self, staged: StagedStep) -> None:
        """Write a step's results permanently.

        A second call with the same name and step must change nothing. For example, record the step in the transaction
        that writes the rows, and skip a step that is already recorded.
        """

    def newest(self, name: str) -> Stamp | None:
        """Return the stamp of a query's newest step in the sink, or None if the sink records no step.

        A stamp without a job means that no job recorded the step. midstream calls `newest` on the driver before the
        first step. A job does not start on a sink that is ahead of the job's checkpoint, or has results of another job.
        """
        return None

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Raise the `SinkError` that `forget_after` would raise with these arguments, but change nothing.

        midstream calls the method for every sink before a job goes back. If a sink raises, the job does not go back.
        """
        return

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Take back a query's results of all steps after `step`.

        The job repeats these steps, perhaps with other results. midstream calls the method when a job goes back to an
        older manifest, and again before the next step. Take back only results whose stamp `given_up` accepts, because
        another driver may already have repeated the steps. A sink that cannot take results back does nothing. If a
        repeated step then has no results, the sink still keeps the old rows of the step.
        """
        return


def other_columns(differing: Iterable[str], place: str) -> SinkError:
    """Make the error for a table at a place; `differing` says column by column what differs."""
    return SinkError(
        f"the table and the results have different columns: {', '.join(differing)}",
        place=place,
        remedy="alter the table so that it has the results' columns, or name another table",
    )


def differing(table: Mapping[str, str], results: Mapping[str, str]) -> list[str]:
    """List what differs between the columns of a table and those of results, by name and type.

    >>> differing({"k": "long", "t": "date"}, {"k": "string", "s": "string"})
    ['k is long and should be string', 's is missing', 't is not of the results']
    """
    found = []
    for name in sorted(table.keys() | results.keys()):
        if name not in table:
            found.append(f"{name} is missing")
        elif name not in results:
            found.append(f"{name} is not of the results")
        elif table[name] != results[name]:
            found.append(f"{name} is {table[name]} and should be {results[name]}")
    return found
