"""Texts as times."""

from __future__ import annotations

from datetime import datetime, time, timedelta

import pyarrow as pa
import pytest

from midstream.admission.reading import read_rows
from midstream.model.schema import StreamSchema

NOON = datetime(2024, 2, 29, 12, 30, 15)

READ = {
    "2024-02-29T12:30:15": NOON,
    "2024-02-29 12:30:15": NOON,
    "2024-02-29T12:30:15Z": NOON,
    "2024-02-29t12:30:15z": NOON,
    "2024-02-29T12:30:15 Z": NOON,
    " 2024-02-29 12:30:15 ": NOON,
    "2024-02-29T13:30:15+01:00": NOON,
    "2024-02-29T13:30:15+0100": NOON,
    "2024-02-29T13:30:15 +01": NOON,
    "2024-02-29T10:00:15-02:30": NOON,
    "20240229T123015": NOON,
    "20240229T123015Z": NOON,
    "20240229T133015+0100": NOON,
    "2024-060T12:30:15Z": NOON,
    "2024-W09-4T13:30:15+01:00": NOON,
    "2024-02-29T12:30:15.123456789Z": NOON.replace(microsecond=123_456),
    "2024-02-29T12:30:15,5": NOON.replace(microsecond=500_000),
    "20240229T123015.25Z": NOON.replace(microsecond=250_000),
    "2024-02-29T12:30": NOON.replace(second=0),
    "20240229T1230Z": NOON.replace(second=0),
    "2024-02-29": datetime(2024, 2, 29),
    "20240229": datetime(2024, 2, 29),
    "2024W094": datetime(2024, 2, 29),
    "1969-12-31T23:59:59.999999999Z": datetime(1969, 12, 31, 23, 59, 59, 999_999),
}
REFUSED = (
    "",
    "soon",
    "2024-02-30",
    "2024-2-9",
    "2024-02-29T25:00",
    "2024-02-29T12:30:61Z",
    "2024-W54-1",
    "2024-367",
    "7",
)


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.string()])
def test_every_form_alone_and_among_others(kind: pa.DataType) -> None:
    schema = StreamSchema("A", pa.schema([("ts", kind)]), "ts")

    def read(*texts: str) -> list[datetime | None]:
        times = read_rows(schema, pa.RecordBatch.from_pydict({"ts": pa.array(texts)})).times
        found: list[datetime | None] = times.cast(pa.timestamp("us")).to_pylist()
        return found

    assert {text: read(text) for text in READ} == {text: [time] for text, time in READ.items()}
    assert {text: read(text) for text in REFUSED} == {text: [None] for text in REFUSED}
    assert read(*READ, *REFUSED) == [*READ.values(), *[None] * len(REFUSED)]


@pytest.mark.parametrize(
    ("text", "same"),
    [("0001-001T00:00+01:00", "0001-01-01T00:00+01:00"), ("9999-W52-5T23:00-05:00", "9999-12-31T23:00-05:00")],
)
def test_an_offset_may_lead_beyond_the_years_of_python(text: str, same: str) -> None:
    schema = StreamSchema("A", pa.schema([("ts", pa.timestamp("us"))]), "ts")
    read = read_rows(schema, pa.RecordBatch.from_pydict({"ts": [text, same]})).times.to_pylist()
    assert read[0] is not None and read[0] == read[1]


HALF_PAST = time(12, 30)
OTHERS: dict[str, tuple[pa.DataType, dict[str, object]]] = {
    "date": (
        pa.date32(),
        {
            "2024-02-29": NOON.date(),
            "20240229": NOON.date(),
            "2024-060": NOON.date(),
            "2024-02-29T23:59:59Z": NOON.date(),
            "2024-03-01 00:30+01:00": NOON.date(),
        },
    ),
    "time of a day": (
        pa.time64("us"),
        {
            "12:30": HALF_PAST,
            "T12:30:00": HALF_PAST,
            " t1230z": HALF_PAST,
            "13:30:00+01:00": HALF_PAST,
            "00:30:00.123456789+01:00": time(23, 30, 0, 123_456),
        },
    ),
    "seconds of a day": (pa.time32("s"), {"12:30:00.9": HALF_PAST}),
    "duration": (
        pa.duration("us"),
        {
            "P1DT2H": timedelta(days=1, hours=2),
            "P2W": timedelta(weeks=2),
            "-PT1M0.5S": -timedelta(minutes=1, seconds=0.5),
            "PT1,1234567S": timedelta(seconds=1, microseconds=123_456),
            "1 day": timedelta(days=1),
            "2 days 3 hours": timedelta(days=2, hours=3),
            "90 seconds": timedelta(seconds=90),
            "-1 day, 23:59:55": -timedelta(seconds=5),
            "1 day -02:00:00.5": timedelta(hours=21, minutes=59, seconds=59.5),
            "36:00": timedelta(hours=36),
        },
    ),
}
UNREAD = {
    "date": ("", "2024-02-30", "12:30"),
    "time of a day": ("", "T", "24:00:00", "1", "2024-02-29T12:30", "-01:00"),
    "seconds of a day": ("12:60",),
    "duration": ("", "P", "PT", "day", "P1M", "1 month", "1:60:00", "5", "P999999999999W", "1.5 days"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_dates_times_of_a_day_and_durations(name: str) -> None:
    """Alone and among others; a text that is none is a dead letter, and changes no other."""
    kind, good = OTHERS[name]
    schema = StreamSchema("A", pa.schema([("x", kind), ("ts", pa.timestamp("us"))]), "ts")

    def read(*texts: str | None) -> tuple[list[object], int]:
        moments = pa.array([0] * len(texts), pa.timestamp("us"))
        reading = read_rows(schema, pa.RecordBatch.from_pydict({"x": pa.array(texts, pa.string()), "ts": moments}))
        return reading.columns["x"].to_pylist(), len(reading.reasons)

    assert [read(text) for text in good] == [([value], 0) for value in good.values()]
    assert [read(text) for text in UNREAD[name]] == [([None], 1)] * len(UNREAD[name])
    among = read(*good, None, *UNREAD[name])
    assert among == ([*good.values(), None, *[None] * len(UNREAD[name])], len(UNREAD[name]))


def test_a_time_too_far_for_nanoseconds_is_none_of_them() -> None:
    schema = StreamSchema("A", pa.schema([("x", pa.timestamp("ns")), ("ts", pa.timestamp("us"))]), "ts")
    rows = {"x": ["9999-01-01", "2024-02-29"], "ts": pa.array([0, 0], pa.timestamp("us"))}
    reading = read_rows(schema, pa.RecordBatch.from_pydict(rows))
    assert reading.columns["x"].is_valid().to_pylist() == [False, True] and list(reading.reasons) == [0]
