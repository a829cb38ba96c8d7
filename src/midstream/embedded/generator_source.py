"""A stream generator as a source: rows that are drawn by a seed, the same on every host and after every restart.

In: the options of a stream of the format `generator`. Out: pieces of event time, each one step's. A piece is drawn by
the seed, the stream's name and its own number alone: so a step that is done again gets the same rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa

from midstream.embedded.file_source import FileSource
from midstream.embedded.stream_generator import GeneratedStream, Schedule
from midstream.expr.duration import parse_duration
from midstream.model.errors import CheckpointError, InputError, MidstreamError
from midstream.model.window import SECOND
from midstream.model.words import suggest
from midstream.sql.ddl import parse_ddl
from midstream.sql.job_specs import GENERATOR, SourceSpec

MOST_ROWS = 10_000_000
"""The most rows that a piece may be expected to have; it is held in memory."""

_OF_STREAM = ("seed", "rate", "step", "until")
_OF_COLUMN = ("values", "selectivity", "skew")
_MOST_VALUES = 2.0**53
_PIECE = re.compile(r"(\d+) of (\d+) us")
_FORM = "write a number, with what follows as '20; 400 from 1 minute; 50 from 2 minutes'"


class Piece(NamedTuple):
    """A stretch of event time: the one of this `number` among those of `step` microseconds."""

    number: int
    step: int

    def __str__(self) -> str:
        return f"{self.number} of {self.step} us"

    @staticmethod
    def parse(text: str, place: str) -> Piece:
        """Read a piece as a manifest names it.

        >>> Piece.parse("17 of 1000000 us", "[streams.A]")
        Piece(number=17, step=1000000)
        """
        found = _PIECE.fullmatch(text)
        if found is None:
            raise CheckpointError(
                f"the recorded position of this stream, {text!r}, is not a position of a generator",
                place=place,
                remedy="declare the former source of the stream, or restart the job with another checkpoint",
            )
        return Piece(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class GeneratorSource(FileSource):
    """Rows of a stream whose columns are drawn as its options say; each step brings `length` microseconds of them."""

    name = GENERATOR
    on_spark = "midstream.spark.generator_frames:frame_of"
    of_options = True

    columns: pa.Schema
    timestamp: str
    stream: GeneratedStream
    seed: int
    length: int
    until: int | None
    place: str

    @staticmethod
    def of(name: str, spec: SourceSpec, known: pa.Schema | None = None) -> GeneratorSource:
        """Make the source of a stream. Raises an `InputError` where its options do not say what to draw."""
        return _Options(name, spec).source()

    @classmethod
    def for_spark(cls, name: str, spec: SourceSpec) -> GeneratorSource:
        """Make the source of a stream; it draws the same rows on Spark."""
        return cls.of(name, spec)

    def waiting(self, read: Collection[str]) -> tuple[str, ...]:
        """Name the next piece; none where the stream has ended."""
        found = self.next_piece(max((Piece.parse(one, self.place) for one in read), default=None))
        return () if found is None else (str(found),)

    def next_piece(self, last: Piece | None) -> Piece | None:
        """Return the piece that follows the last one that was read; None at the end of the stream.

        Raises a `CheckpointError` where that one had another length.
        """
        if last is not None and last.step != self.length:
            raise CheckpointError(
                f"a generator cannot change its step from {last.step / SECOND:g} s to {self.length / SECOND:g} s",
                place=self.place,
                remedy=f'write step = "{last.step} us", or restart the job with another checkpoint',
            )
        found = Piece(0 if last is None else last.number + 1, self.length)
        return None if self.until is not None and found.number * self.length >= self.until else found

    def read(self, files: Sequence[str]) -> pa.Table:
        """Draw the rows of pieces."""
        tables = [self._rows(Piece.parse(file, self.place).number) for file in files]
        return pa.concat_tables(tables) if tables else self.columns.empty_table()

    def forgettable(self, read: Mapping[str, int], kept: Collection[int]) -> set[str]:
        """Choose all pieces except the last one, now and at each of the `kept` steps."""
        pieces = {file: Piece.parse(file, self.place) for file in read}
        needed = {
            max((file for file, at in read.items() if at <= step), key=pieces.__getitem__, default="")
            for step in (*kept, max(read.values(), default=0))
        }
        return set(read) - needed

    def _rows(self, number: int) -> pa.Table:
        start, end = number * self.length, (number + 1) * self.length
        end = end if self.until is None else min(end, self.until)
        drawn = np.random.default_rng([self.seed, crc32(self.stream.name.encode()), number])
        rows = self.stream.rows(start / SECOND, end / SECOND, drawn)
        found = [rows.column("ts" if name == self.timestamp else _within(name)) for name in self.columns.names]
        return pa.table(
            [values.cast(field.type) for values, field in zip(found, self.columns, strict=True)], schema=self.columns
        )


class _Options:
    """The options of a generated stream, read one by one; each fault names the stream and the option."""

    def __init__(self, name: str, spec: SourceSpec) -> None:
        self.stream, self.spec, self.place = name, spec, f"[streams.{name}]"
        self.given = {key.lower() if key.lower() in _OF_STREAM else key: one for key, one in spec.options.items()}

    def source(self) -> GeneratorSource:
        columns = self._columns()
        drawn = [name for name in columns.names if name != self.spec.timestamp]
        self._refuse_unknown(drawn)
        rate = self._schedule("rate", self._needed("rate", "50"), _a_rate)
        domains = {name: self._domain(name) for name in drawn}
        skews = {
            name: self._schedule(f"{name}.skew", self.given[f"{name}.skew"], _a_skew)
            for name in drawn
            if f"{name}.skew" in self.given
        }
        length = self._duration("step", "1 second")
        if (most := max(value for _, value in rate.pieces) * length / SECOND) > MOST_ROWS:
            raise self._fault(
                "rate",
                f"makes {most:,.0f} rows in a step",
                f"use a lower rate or a shorter step: a step may have at most {MOST_ROWS:,} rows",
            )
        for name, domain in domains.items():
            self._check_type(columns.field(name), domain)
        stream = GeneratedStream(
            self.stream, rate, {_within(name): one for name, one in domains.items()},
            {_within(name): one for name, one in skews.items()},
        )  # fmt: skip
        until = self._duration("until", "") if "until" in self.given else None
        return GeneratorSource(columns, self.spec.timestamp, stream, self._seed(), length, until, self.place)

    def _columns(self) -> pa.Schema:
        timestamp, remedy = self.spec.timestamp, 'write a schema such as schema = "k BIGINT, ts TIMESTAMP"'
        if self.spec.schema is None:
            raise InputError(f"the generated stream {self.stream!r} has no schema", place=self.place, remedy=remedy)
        if self.spec.path is not None:
            raise InputError("a generator reads no path", place=self.place, remedy="leave the path out")
        columns = parse_ddl(self.spec.schema)
        if timestamp not in columns.names or columns.field(timestamp).type != pa.timestamp("us"):
            raise InputError(
                f"the timestamp {timestamp!r} of a generated stream is not a column of type TIMESTAMP",
                place=self.place,
                remedy=remedy,
            )
        return columns

    def _refuse_unknown(self, drawn: Sequence[str]) -> None:
        known = [*_OF_STREAM, *(f"{name}.{what}" for name in drawn for what in _OF_COLUMN)]
        for option in self.given:
            if option not in known:
                raise self._fault(option, "is not an option of a generator", suggest(option, known))

    def _seed(self) -> int:
        text = self._needed("seed", "7")
        if not text.isdecimal():
            raise self._fault("seed", f"is {text!r}", "use a whole number of at least 0")
        return int(text)

    def _domain(self, column: str) -> Schedule:
        size, selectivity = f"{column}.values", f"{column}.selectivity"
        if size in self.given and selectivity in self.given:
            raise self._fault(size, f"cannot be given together with {selectivity}", "leave one of the two out")
        if selectivity in self.given:
            found = self._schedule(selectivity, self.given[selectivity], _a_selectivity)
            return Schedule(tuple((start, float(round(1 / value))) for start, value in found.pieces))
        return self._schedule(size, self._needed(size, "40"), _a_domain)

    def _schedule(self, option: str, text: str, check: Callable[[float], str | None]) -> Schedule:
        pieces = list[tuple[float, float]]()
        for number, part in enumerate(text.split(";")):
            given, word, moment = part.partition(" from ")
            try:
                value = float(given)
            except ValueError:
                raise self._fault(option, f"has {part.strip()!r}", _FORM) from None
            if (reason := "not a finite number" if not math.isfinite(value) else check(value)) is not None:
                remedy = "0 or more" if reason == "below zero" else f"one that is {reason.removeprefix('not ')}"
                raise self._fault(option, f"has {given.strip()}, which is {reason}", f"use {remedy}")
            if bool(word) != (number > 0):
                raise self._fault(option, "must have `from` at each value except the first", _FORM)
            start = self._microseconds(option, moment) / SECOND if word else 0.0
            if pieces and start <= pieces[-1][0]:
                raise self._fault(
                    option, f"does not ascend in time at {part.strip()!r}", "put the parts in order of time"
                )
            pieces.append((start, value))
        return Schedule(tuple(pieces))

    def _duration(self, option: str, default: str) -> int:
        found = self._microseconds(option, self.given.get(option, default))
        if not found:
            raise self._fault(option, "is 0", "use a duration above 0, such as '1 second'")
        return found

    def _microseconds(self, option: str, text: str) -> int:
        try:
            return parse_duration(text, what=option, place=self.place)
        except MidstreamError as error:
            raise InputError(error.message, place=self.place, remedy=error.remedy) from None

    def _check_type(self, field: pa.Field, domain: Schedule) -> None:
        greatest = int(max(value for _, value in domain.pieces)) - 1
        try:
            pa.array([greatest], pa.int64()).cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f"column {field.name!r} of type {field.type} cannot hold whole numbers up to {greatest}",
                place=self.place,
                remedy="declare the column as BIGINT, or use fewer values",
            ) from None

    def _needed(self, option: str, example: str) -> str:
        if option not in self.given:
            raise self._fault(option, "is missing", f'give it: options = {{ "{option}" = "{example}", ... }}')
        return self.given[option]

    def _fault(self, option: str, what: str, remedy: str) -> InputError:
        return InputError(f"{option} of the generated stream {self.stream!r} {what}", place=self.place, remedy=remedy)


def _within(column: str) -> str:
    # No column may have the name that the generator gives its event time.
    return f"_{column}"


def _a_rate(value: float) -> str | None:
    return "below zero" if value < 0 else None


def _a_skew(value: float) -> str | None:
    return None if 0 <= value <= 100 else "not between 0 and 100"


def _a_selectivity(value: float) -> str | None:
    return None if 1 / _MOST_VALUES < value <= 1 else "not above 0 and at most 1"


def _a_domain(value: float) -> str | None:
    return None if value == int(value) and 1 <= value <= _MOST_VALUES else "not a whole number of at least 1"
