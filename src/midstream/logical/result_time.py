"""The type of a result's time, `_ts`: that of the timestamp columns its query reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.types as is_

from midstream.expr.types import TIMESTAMP, TIMESTAMPTZ
from midstream.logical.query import Source
from midstream.model.schema import StreamSchema


def result_time(sources: Iterable[Source], streams: Mapping[str, StreamSchema]) -> pa.DataType:
    """The type of the times of results over these sources, which their timestamp columns compare in.

    >>> plain = StreamSchema("A", pa.schema([("ts", pa.timestamp("us"))]), "ts")
    >>> zoned = StreamSchema("B", pa.schema([("ts", pa.timestamp("us", "UTC"))]), "ts")
    >>> a, b = Source("A", "A", None), Source("B", "B", None)
    >>> [str(result_time(ab, {"A": plain, "B": zoned})) for ab in ([a], [b], [a, b])]
    ['timestamp[us]', 'timestamp[us, tz=UTC]', 'timestamp[us, tz=UTC]']
    """
    return time_in(streams[source.stream] for source in sources)


def time_in(streams: Iterable[StreamSchema]) -> pa.DataType:
    """The same over these streams."""
    return time_of(stream.columns.field(stream.timestamp).type for stream in streams)


def time_of(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """A timestamp in microseconds, with a zone if any of these types has one; one that is not a timestamp has none."""
    return TIMESTAMPTZ if any(is_.is_timestamp(kind) and kind.tz is not None for kind in kinds) else TIMESTAMP
