"""The contract of what an embedded engine's job reads: files, each read once, in an order that is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence, Set
from typing import ClassVar

import pyarrow as pa

from midstream.model.allowed import check_source
from midstream.model.errors import InputError
from midstream.sql.job_specs import SourceSpec

MOST_FILES = "maxfilespertrigger"
"""The option of how many files a step takes at most, in small letters."""

ON_SPARK = "run the job on Spark: midstream run --engine spark"


class FileSource(ABC):
    """The files of a stream, or what else is read in pieces that have names, such as ranges of a topic.

    A class with a `name`, which is the format that streams give, is found in this package and by entry points of the
    group `midstream.sources`.
    """

    name: ClassVar[str]

    columns: pa.Schema
    """What the stream declares."""

    on_spark: ClassVar[str | None] = None
    """The function that reads such a stream on Spark, as `module:function`; None if Spark's own reader does.

    The function takes the session, the stream's name, its declaration and the job's patience in microseconds.
    """

    of_options: ClassVar[bool] = False
    """Whether its options say all that it reads, so that they are judged together."""

    ahead: ClassVar[bool] = False
    """Whether the next step is read while one is done, where more waits than one takes. `interrupt` ends that."""

    @staticmethod
    @abstractmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None = None) -> FileSource:
        """Make the source of a stream; `known` are its columns where it ran before.

        Raises a `MidstreamError` where the declaration is wrong, or only Spark can read it.
        """

    @classmethod
    def for_spark(cls, name: str, spec: SourceSpec) -> FileSource | None:
        """Make the source that a job on Spark reads; None where Spark's own reader does.

        Raises a `MidstreamError` where the declaration is wrong, or only an embedded engine can read it.
        """
        check_source(spec.format, spec.options, f"[streams.{name}]")
        return None

    @property
    def most(self) -> int | None:
        """Limit the number of files in a step; None for all that `waiting` gives."""
        return None

    @abstractmethod
    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """List the files that were not read, in the order to read them in."""

    @abstractmethod
    def read(self, files: Sequence[str]) -> pa.Table:
        """Read the rows of files, one file after the other."""

    @abstractmethod
    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """Choose the files that were read, each with the step that read it, that do not have to be known any more.

        None of them is ever given by `waiting` again, also once the job has gone back to one of the `kept` steps. Where
        that is uncertain, a file is not among them: to know too much costs a little room, to know too little rows.
        """

    @property
    def beside(self) -> tuple[str, ...]:
        """Name the columns that `read` adds, which dead letters show."""
        return ()

    def has(self, file: str) -> bool:
        """Return whether a file that Spark has found is one of the source."""
        return True

    def backlog(self, waiting: Sequence[str], taken: Sequence[str]) -> dict[str, int]:
        """Return what waits at the source after a step took `taken`: a count for each part, "" for the whole source."""
        return {"": len(waiting) - len(taken)}

    def check(self) -> None:
        """Raise a `MidstreamError` where nothing could be read; called by `midstream check`, it changes nothing."""
        return

    def interrupt(self) -> None:
        """Have a call that waits in another thread fail soon, because the source is about to be closed."""
        return

    def close(self) -> None:
        """Close what the source holds open."""
        return


def known_options(spec: SourceSpec, known: Set[str], place: str) -> dict[str, str]:
    """Read the options of a stream by their names in small letters; an `InputError` names one that only Spark knows."""
    options = {key.lower(): value for key, value in spec.options.items()}
    if unknown := sorted(options.keys() - known - {MOST_FILES}):
        raise InputError(
            f"the embedded engine does not support the option {unknown[0]!r} of {spec.format}",
            place=place,
            remedy=ON_SPARK,
        )
    if not options.get(MOST_FILES, "1").isdecimal():
        raise InputError(
            "maxFilesPerTrigger is not a whole number", place=place, remedy="use a whole number, such as 100"
        )
    return options


def most_files(options: Mapping[str, str]) -> int | None:
    """Return how many files a step takes at most; None for all.

    >>> most_files({"maxfilespertrigger": "0"}), most_files({})
    (1, None)
    """
    most = options.get(MOST_FILES)
    return None if most is None else max(1, int(most))
