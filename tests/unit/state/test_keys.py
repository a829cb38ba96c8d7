"""Key codes against plain Python: equal keys have equal codes, and codes of one word are exact."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from midstream.model.window import EVENT_TIME
from midstream.state.combinations import Combinations, Heading
from midstream.state.keys import FEW, band_codes, is_exact, is_integral, key_codes, stable_order, stable_sort
from midstream.state.sorted_run import SortedRun, merge_runs

WORDS = {
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "int8": (pa.int8(), st.integers(-128, 127)),
    "uint64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "double": (pa.float64(), st.floats()),
    "float": (pa.float32(), st.floats(width=32)),
    "boolean": (pa.bool_(), st.booleans()),
    "date": (pa.date32(), st.dates()),
    "timestamp": (pa.timestamp("us"), st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1))),
    "duration": (pa.duration("us"), st.timedeltas(datetime.timedelta(-9999), datetime.timedelta(9999))),
}
BYTES = {
    "text": (pa.string(), st.text("ab\x00é漢", max_size=4)),
    "binary": (pa.binary(), st.binary(max_size=5)),
    "large text": (pa.large_string(), st.text(alphabet="ab\0é漢", max_size=3)),
    "decimal": (pa.decimal128(6, 2), st.decimals(-999, 999, places=2)),
}
KINDS = {**WORDS, **BYTES}
few = settings(max_examples=40, deadline=None)


def equal(one: Any, other: Any) -> bool:
    """SQL equality of two values that are not NULL."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def values_of(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Lists with repetitions and NULLs."""
    return st.lists(strategy, min_size=1, max_size=6).flatmap(
        lambda drawn: st.lists(st.sampled_from([*drawn, None]), min_size=1, max_size=12)
    )


@pytest.mark.parametrize("name", KINDS)
@few
@given(st.data())
def test_equal_keys_have_equal_codes(name: str, data: st.DataObject) -> None:
    kind, strategy = KINDS[name]
    values = data.draw(values_of(strategy))
    codes, valid = key_codes([pa.array(values, kind)])
    assert codes.dtype == np.int64
    assert len(codes) == len(values)
    assert (valid is None and None not in values) or (
        valid is not None and valid.tolist() == [v is not None for v in values]
    )
    for i, one in enumerate(values):
        for j, other in enumerate(values):
            if one is not None and other is not None and equal(one, other):
                assert codes[i] == codes[j]


@pytest.mark.parametrize("name", WORDS)
@few
@given(st.data())
def test_codes_of_a_word_tell_unequal_keys_apart(name: str, data: st.DataObject) -> None:
    kind, strategy = WORDS[name]
    assert is_exact([kind])
    values = data.draw(st.lists(strategy, min_size=2, max_size=12))
    array = pa.array(values, kind)
    seen = array.to_pylist()
    codes, _ = key_codes([array])
    for i, one in enumerate(seen):
        for j, other in enumerate(seen):
            assert (codes[i] == codes[j]) == equal(one, other), (one, other)


def test_nan_and_zero() -> None:
    codes, valid = key_codes([pa.array([0.0, -0.0, math.nan, -math.nan, np.float64("nan"), math.inf])])
    assert valid is None
    assert codes[0] == codes[1]
    assert codes[2] == codes[3] == codes[4]
    assert len(set(codes.tolist())) == 3


def test_the_input_is_left_as_it_is() -> None:
    """Codes are made on the column's own memory where they can be; a NaN put into its one form must not write there."""
    odd = np.array([0x7FF8000000000001, 0x8000000000000000], np.uint64).view(np.float64)
    array = pa.array(odd)
    before = array.to_numpy().view(np.uint64).copy()
    key_codes([array])
    assert (array.to_numpy().view(np.uint64) == before).all()


@few
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2**62, -1, None]), st.sampled_from(["", "a", "b", "ab", None])), max_size=15
    )
)
@example([(1, "a"), (1, "a"), (0, "ab"), (None, "a"), (0, None)])
def test_keys_of_two_columns(rows: list[tuple[int | None, str | None]]) -> None:
    columns = [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.string())]
    codes, valid = key_codes(columns)
    whole = [None not in row for row in rows]
    assert valid is None or valid.tolist() == whole
    assert valid is not None or all(whole)
    for i, one in enumerate(rows):
        for j, other in enumerate(rows):
            if whole[i] and whole[j]:
                assert (codes[i] == codes[j]) == (one == other)


def test_the_order_of_columns_matters() -> None:
    one, other = pa.array([1, 2]), pa.array([2, 1])
    codes, _ = key_codes([one, other])
    assert codes[0] != codes[1]


@pytest.mark.parametrize(
    ("types", "exact"),
    [
        ([pa.int32()], True),
        ([pa.float64()], True),
        ([pa.bool_()], True),
        ([pa.date32()], True),
        ([pa.timestamp("us")], True),
        ([pa.string()], False),
        ([pa.binary()], False),
        ([pa.decimal128(9, 2)], False),
        ([pa.int32(), pa.int32()], False),
    ],
)
def test_what_is_exact(types: Sequence[pa.DataType], exact: bool) -> None:
    assert is_exact(types) is exact


def test_a_column_cut_out_of_another_has_the_same_codes() -> None:
    whole = pa.array(["zero", "one", "two", None, "four", ""])
    numbers = pa.array([0, 1, 2, None, 4, 5])
    for array in (whole, numbers):
        codes, _ = key_codes([array])
        cut, valid = key_codes([array.slice(1, 4)])
        assert valid is not None
        assert cut[valid].tolist() == codes[1:5][valid].tolist()


def test_nothing_has_no_codes() -> None:
    for kind in (pa.int64(), pa.float64(), pa.string(), pa.decimal128(5, 1)):
        codes, valid = key_codes([pa.array([], kind)])
        assert len(codes) == 0
        assert valid is None
        assert len(band_codes(pa.array([], pa.float64()))[0]) == 0


def test_texts_that_look_alike_get_other_codes() -> None:
    texts = ["", "\0", "\0\0", "a", "a\0", "\0a", "aa", "ba", "ab", "é", "e\u0301", "x" * 1000, "x" * 1001]
    codes, _ = key_codes([pa.array(texts)])
    assert len(set(codes.tolist())) == len(texts)


@few
@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=12))
def test_band_codes_of_integers_are_the_integers(values: list[int | None]) -> None:
    codes, valid = band_codes(pa.array(values, pa.int64()))
    assert codes.dtype == np.int64
    kept = codes if valid is None else codes[valid]
    assert kept.tolist() == [v for v in values if v is not None]


@pytest.mark.parametrize(
    ("array", "codes"),
    [
        (pa.array([datetime.date(1970, 1, 2)]), [86_400_000_000]),
        (pa.array([1], pa.timestamp("s")), [1_000_000]),
        (pa.array([1_999], pa.timestamp("ns")), [1]),
        (pa.array([7], pa.timestamp("us", "Europe/Berlin")), [7]),
        (pa.array([3], pa.duration("ms")), [3_000]),
        (pa.array([5], pa.int16()), [5]),
        (pa.array([True, False]), [1, 0]),
        (pa.array([1.5], pa.float32()), [1.5]),
        (pa.array([Decimal("2.25")], pa.decimal128(5, 2)), [2.25]),
    ],
)
def test_band_codes_count_times_in_microseconds(array: pa.Array, codes: list[float]) -> None:
    found, valid = band_codes(array)
    assert found.tolist() == codes
    assert valid is None
    assert is_integral(array.type) == (found.dtype == np.int64)


@few
@given(st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=40))
def test_stable_order_of_integers(values: list[int]) -> None:
    order = stable_order(np.array(values, np.int64))
    assert order.tolist() == sorted(range(len(values)), key=lambda i: values[i])


@few
@given(st.lists(st.floats(allow_nan=False), max_size=40))
def test_stable_order_of_doubles(values: list[float]) -> None:
    order = stable_order(np.array(values, np.float64))
    assert order.tolist() == sorted(range(len(values)), key=lambda i: values[i])


def test_nan_sorts_last() -> None:
    assert stable_order(np.array([math.nan, 1.0, math.inf, math.nan])).tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("count", [FEW, FEW + 1, 3 * FEW])
@pytest.mark.parametrize("low, high", [(-20, 20), (0, 10**9), (-(2**63), 2**63 - 1)])
def test_many_values_are_sorted_as_few_are(count: int, low: int, high: int) -> None:
    values = np.random.default_rng(count).integers(low, high, count, endpoint=True)
    wanted = np.argsort(values, kind="stable")
    order, ascending = stable_sort(values)
    assert order.tolist() == wanted.tolist()
    assert ascending.tolist() == values[wanted].tolist()


@pytest.mark.parametrize("sizes", [(3,), (2_000, 10, 10, 10), (1_500, 1_500)])
def test_runs_that_are_merged_are_in_order_and_ties_in_that_of_the_runs(sizes: tuple[int, ...]) -> None:
    random = np.random.default_rng(len(sizes))
    codes = [np.sort(random.integers(0, 500, size)) for size in sizes]
    numbers = np.arange(sum(sizes)) + 7
    heading = Heading(("A",), (EVENT_TIME,), (EVENT_TIME,))
    runs, begin = [], 0
    for size, own in zip(sizes, codes, strict=True):
        words = np.array([numbers[begin : begin + size]] * heading.width)
        runs.append(SortedRun(own, Combinations.of(heading, words)))
        begin += size
    merged, whole = merge_runs(runs), np.concatenate(codes)
    wanted = np.argsort(whole, kind="stable")
    assert merged.codes is not None
    assert merged.codes.tolist() == whole[wanted].tolist()
    assert merged.combinations.refs["A"].tolist() == numbers[wanted].tolist()
