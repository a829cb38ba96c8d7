"""Values that their stream's types do not have: the same rows are found at once as one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.admission import reading
from midstream.admission.reading import Reading, read_rows
from midstream.model.schema import StreamSchema

TEXT_KINDS = [
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.decimal128(10, 2), pa.decimal128(38, 0), pa.decimal128(5, 5), pa.decimal128(3, -2), pa.decimal256(50, 2)),
    *(pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"), pa.time64("us")),
    *(pa.time32("s"), pa.duration("us")),
]
NUMBER_KINDS = [
    *(pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.bool_(), pa.string(), pa.date32(), pa.timestamp("us")),
]

DIGITS = st.text("0123456789", max_size=22) | st.sampled_from(["0", "00", "9" * 18, "9" * 40, "0" * 45 + "1", "1_0"])
SIGNS = st.sampled_from(["", "", "", "-", "+", "--", "+-", "\u2212"])
EXPONENTS = st.sampled_from(["", "", "", "e5", "E-3", "e+2", "e", "e-", "e400", "e-400", "e99999999999", "e-0", "d1"])
NUMBERS = st.builds("".join, st.tuples(SIGNS, DIGITS, st.sampled_from(["", "", ".", "..", ","]), DIGITS, EXPONENTS))
EDGES = st.builds(
    lambda power, more, sign: str(sign * ((1 << power) + more)),
    st.sampled_from([7, 8, 15, 16, 31, 32, 63, 64]),
    st.integers(-2, 1),
    st.sampled_from([1, -1]),
)
WORDS = "- + . e1 inf -Infinity infin NaN nan(1) -nan() null 0x 0xFF 0XfF -0x1 true TRUE fALSE fal\u017fe t yes"
NAMED = st.sampled_from([*WORDS.split(), "", " ", "0x" + "F" * 16, "0x" + "0" * 17])
DAYS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(
        ["2024", "2023", "1900", "2000", "0000", "9999", "10000", "24", "-001", "\u0662\u0660\u0662\u0664"]
    ),
    dash := st.sampled_from(["-", "-", "", "/"]),
    st.sampled_from(["01", "02", "04", "12", "13", "00", "2", "W09", "W53", "060", "366", "W9"]),
    dash,
    st.sampled_from(["01", "29", "30", "31", "32", "00", "9", "", "4", "8", "\uff11"]),
)
CLOCKS = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["T", " ", "t", "", "  ", "TT"]),
    st.sampled_from(["00", "23", "24", "7", "", "-1"]),
    st.sampled_from(["", ":00", ":59", ":60", "00", "5", ":"]),
    st.sampled_from(["", ":00", ":59", ":60", "59", ":", ":5"]),
    st.sampled_from(["", ".5", ",5", ".123456", ".123456789", ".", ".\uff11"]),
)
ZONES = st.sampled_from(
    ["", "", "Z", "z", " Z", "+01", "+0130", "-01:30", "+24", "+23:59", "+01:60", "-", "UTC", "[UTC]", "Z+01", "+1"]
)
TIMES = st.builds("".join, st.tuples(DAYS, CLOCKS, ZONES)) | DAYS
DURATIONS = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-", "P", "+P", "PT", "p"]),
    st.sampled_from(["1", "02:30", "-1", "7W", "9" * 13, ""]),
    st.sampled_from([" days", " day", "D", "", "DT5H", ":00", " hour 3 minutes", "W"]),
    st.sampled_from(["", " 01:00:00", ", 5 seconds", "T1.5S", ".5 seconds"]),
)
TEXTS = st.builds(
    "{}{}{}".format,
    around := st.sampled_from(["", "", "", "", " ", "\t", "\n", "\u00a0", "\u3000", "\x00"]),
    NUMBERS | EDGES | NAMED | TIMES | CLOCKS | DURATIONS | st.text(max_size=4),
    around,
)
VALUES = st.sampled_from([0.0, -0.0, 0.5, -1.0, 1e10, 1e300, math.inf, -math.inf, math.nan]) | st.builds(
    lambda power, more, sign: float(sign * (2**power + more)),
    st.sampled_from([7, 8, 11, 16, 24, 31, 53, 63, 64]),
    st.integers(-2, 2),
    st.sampled_from([1, -1]),
)


def read(values: pa.Array, kind: pa.DataType) -> Reading:
    schema = StreamSchema("A", pa.schema([("v", kind), ("ts", pa.timestamp("us"))]), "ts")
    times = pa.array(range(len(values)), pa.timestamp("us"))
    return read_rows(schema, pa.RecordBatch.from_arrays([values, times], names=["v", "ts"]))


def as_by_halving(values: pa.Array, kind: pa.DataType) -> None:
    """What is read, and the reasons of what is not, are what they are where nothing is known of any type."""
    found = read(values, kind)
    nothing = pa.repeat(pa.scalar(False), len(values))
    with mock.patch.object(reading, "surely_unreadable", lambda *_: nothing):
        halved = read(values, kind)
    assert found.reasons == halved.reasons, values
    mine, others = found.columns["v"], halved.columns["v"]
    if pt.is_floating(kind):
        assert np.array_equal(np.asarray(mine), np.asarray(others), equal_nan=True)
    else:
        assert mine.equals(others)


@settings(deadline=None)
@given(st.lists(TEXTS | st.none(), min_size=1, max_size=12), st.sampled_from(TEXT_KINDS))
@example(["0001-001T00:00+01:00", "x"], pa.timestamp("us"))
@example(["99999999999999999999", "-9223372036854775808", "9223372036854775808"], pa.int64())
def test_texts_are_read_as_one_by_one(texts: list[str | None], kind: pa.DataType) -> None:
    as_by_halving(pa.array(texts, pa.string()), kind)
    as_by_halving(pa.array(texts, pa.large_string()), kind)
    as_by_halving(pa.array(texts, pa.string()).dictionary_encode(), kind)


@settings(deadline=None)
@given(st.lists(VALUES | st.none(), min_size=1, max_size=12), *[st.sampled_from(NUMBER_KINDS)] * 2)
def test_numbers_are_read_as_one_by_one(values: list[float | None], given: pa.DataType, kind: pa.DataType) -> None:
    if pt.is_integer(given):
        least, most = (-(1 << given.bit_width - 1), (1 << given.bit_width - 1) - 1)
        if pt.is_unsigned_integer(given):
            least, most = 0, (1 << given.bit_width) - 1
        whole = [None if x is None or not math.isfinite(x) else min(max(int(x), least), most) for x in values]
        as_by_halving(pa.array(whole, given), kind)
    elif pt.is_floating(given):
        as_by_halving(pc.cast(pa.array(values, pa.float64()), given, safe=False), kind)


UNREADABLE: dict[str, tuple[pa.DataType, Callable[[int], Any]]] = {
    "words": (pa.int64(), lambda number: f"x{number}"),
    "beyond 64 bits": (pa.int64(), lambda number: str(10**19 + number)),
    "beyond 32 bits": (pa.int32(), lambda number: 2**40 + number),
    "fractions": (pa.int64(), lambda number: number + 0.5),
    "no floats": (pa.float64(), lambda number: f"{number},5"),
    "no decimals": (pa.decimal128(10, 2), lambda number: f"{number} "),
    "finer than a decimal": (pa.decimal128(10, 2), lambda number: f"{number + 1}e-5"),
    "too great for a decimal": (pa.decimal128(10, 2), lambda number: f"{10**9 + number}.5"),
    "no truth": (pa.bool_(), lambda number: f"{number + 2}"),
    "no days": (pa.date32(), lambda number: f"{number}-02-30"),
    "no times": (pa.timestamp("us"), lambda number: f"2024-02-30T{number}"),
    "no times of a day": (pa.time64("us"), lambda number: f"10:61:{number}"),
    "no durations": (pa.duration("us"), lambda number: f"{number} months"),
    "never cast": (pa.list_(pa.int64()), lambda number: f"[{number}]"),
}


@pytest.mark.parametrize("what", UNREADABLE)
def test_rows_that_cannot_be_read_cost_a_handful_of_casts(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, value = UNREADABLE[what]
    plain, casts = reading._as_type, list[pa.DataType]()

    def counted(values: pa.Array, kind: pa.DataType) -> pa.Array:
        casts.append(kind)
        return plain(values, kind)

    monkeypatch.setattr(reading, "_as_type", counted)
    found = read(pa.array([value(number) for number in range(500)]), kind)
    assert len(found.reasons) == 500
    assert len(casts) <= 3


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.date32(), pa.timestamp("us"), pa.time64("us")])
@pytest.mark.parametrize("what", ["damaged", "views"])
def test_damaged_texts_and_views_stop_nothing(kind: pa.DataType, what: str) -> None:
    """Arrow asks no regular expression of the former, and takes no rows of the latter."""
    good = {pa.date32(): "2024-02-29", pa.timestamp("us"): "2024-02-29", pa.time64("us"): "12:30"}.get(kind, "7")
    words = pa.array([b"\xff" if what == "damaged" else b"soon", good.encode(), None])
    texts = pa.Array.from_buffers(pa.string(), 3, words.buffers())
    texts = texts if what == "damaged" else texts.cast(pa.string_view())
    reasons: dict[int, str] = {}
    read = reading.read_as(texts, pa.field("x", kind), reasons)
    assert read.type == kind and read.is_valid().to_pylist() == [False, True, False] and list(reasons) == [0]
