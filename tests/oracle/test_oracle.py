"""The oracle against brute force on small random inputs, and against answers worked out by hand."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from tests.drawing import seeds
from tests.oracle import brute
from tests.oracle.answer import answers
from tests.oracle.arrival import Lifetime, arrive
from tests.oracle.compare import assert_each_step_same, difference, normal, rows
from tests.oracle.spec import Condition, Item, QuerySpec, SourceSpec, StreamSpec, Subtrahend

SCHEMA = pa.schema([("k", pa.int64()), ("d", pa.float64()), ("s", pa.string()), ("u", pa.int64()), ("ts", pa.int64())])
NAN = float("nan")
CASES = 60


def make_table(values: Iterable[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*values, strict=True)) or [()] * len(SCHEMA)
    return pa.table([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def draw(rng: random.Random, names: str, size: int, span: int) -> tuple[list[StreamSpec], list[dict[str, pa.Table]]]:
    """Streams with some disorder, cut into steps."""
    streams = [StreamSpec(name, SCHEMA, lateness=rng.choice([0, 2, 5])) for name in names]
    steps = []
    drawn = [(rng.randrange(span), rng.choice(names), number) for number in range(size)]
    drawn.sort(key=lambda row: row[0] + rng.choice([0, 0, 0, 3, 6]))
    while drawn:
        cut = rng.randrange(size + 1)
        step: dict[str, list[tuple[Any, ...]]] = {name: [] for name in names}
        for ts, name, number in drawn[:cut]:
            key = rng.choice([0, 0, 1, 2, None])
            value = rng.choice([0.0, -0.0, 1.0, 2.5, NAN, NAN, None])
            step[name].append((key, value, rng.choice(["a", "b", None]), number, rng.choice([ts] * 12 + [None])))
        steps.append({name: make_table(values) for name, values in step.items() if values or rng.random() < 0.5})
        drawn = drawn[cut:]
    return streams, steps


def one_by_one(
    streams: list[StreamSpec], steps: list[dict[str, pa.Table]]
) -> tuple[list[brute.Arrived], dict[str, int]]:
    """The admitted rows in order of arrival, and the final watermarks."""
    greatest: dict[str, int] = {}
    admitted: list[brute.Arrived] = []
    lateness = {s.name: s.lateness for s in streams}
    for step in steps:
        begin = {name: most - lateness[name] for name, most in greatest.items()}
        fresh = []
        for index, stream in enumerate(streams):
            for position, values in enumerate(step[stream.name].to_pylist() if stream.name in step else []):
                if values["ts"] is not None and values["ts"] >= begin.get(stream.name, -999):
                    fresh.append((values["ts"], index, position, stream.name, values))
        for ts, _, _, name, values in sorted(fresh, key=lambda row: row[:3]):
            admitted.append(brute.Arrived(name, ts, len(admitted), values))
            greatest[name] = max(ts, greatest.get(name, ts))
    return admitted, {name: greatest[name] - lateness[name] for name in greatest}


def windows(rng: random.Random, aliases: Iterable[tuple[str, str]]) -> tuple[list[SourceSpec], list[brute.Input]]:
    specs, inputs = [], []
    for alias, stream in aliases:
        size = {"range": rng.choice([0, 1, 3, 8])} if rng.random() < 0.6 else {"rows": rng.choice([1, 2, 4])}
        specs.append(SourceSpec(alias, stream, **size))
        inputs.append(brute.Input(alias, stream, **size))
    return specs, inputs


PAIRS: list[tuple[str, brute.Test]] = [
    ("x.k = y.k", lambda r: brute.equal(r["x"]["k"], r["y"]["k"])),
    ("x.d = y.d", lambda r: brute.equal(r["x"]["d"], r["y"]["d"])),
    ("x.d < y.d", lambda r: brute.less(r["x"]["d"], r["y"]["d"])),
    ("NOT (x.s = y.s)", lambda r: (lambda e: None if e is None else not e)(brute.equal(r["x"]["s"], r["y"]["s"]))),
    (
        "x.k = y.k OR x.d = y.d",
        lambda r: brute.either(brute.equal(r["x"]["k"], r["y"]["k"]), brute.equal(r["x"]["d"], r["y"]["d"])),
    ),
]
THIRD: list[tuple[str, brute.Test]] = [
    ("y.s = z.s", lambda r: brute.equal(r["y"]["s"], r["z"]["s"])),
    ("x.d <= z.d", lambda r: (lambda e: None if e is None else not e)(brute.less(r["z"]["d"], r["x"]["d"]))),
    (
        "x.k + y.k = z.k",
        lambda r: None if None in (r["x"]["k"], r["y"]["k"]) else brute.equal(r["x"]["k"] + r["y"]["k"], r["z"]["k"]),
    ),
]


def expect(answer: pa.Table, expected: list[tuple[Any, ...]]) -> None:
    assert Counter(rows(answer)) == Counter(tuple(normal(v) for v in row) for row in expected)


@pytest.mark.parametrize("seed", seeds(CASES))
def test_joins_equal_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    streams, steps = draw(rng, "ABC", 18, 14)
    aliases = [("x", "A"), ("y", rng.choice("AB")), ("z", rng.choice("ABC"))][: rng.choice([2, 3, 3])]
    sources, inputs = windows(rng, aliases)
    tests = [rng.choice(PAIRS)] + ([rng.choice(THIRD)] if len(aliases) > 2 else [])
    where = tuple(Condition(text, ()) for text, _ in tests)
    select = (*(Item(f"{alias}.u", alias) for alias, _ in aliases), Item("x.d"), Item("_ts"))
    found = answers(streams, steps, [Lifetime("q", QuerySpec(tuple(sources), select, where))])["q"]
    admitted, _ = one_by_one(streams, steps)
    expected = [
        (*(row.values["u"] for row in combination.values()), combination["x"].values["d"], time)
        for time, combination in brute.joined(inputs, admitted, lambda r: brute.both(*(test(r) for _, test in tests)))
    ]
    expect(found.table, expected)
    assert found.times == sorted(found.times)


@pytest.mark.parametrize("seed", seeds(CASES))
def test_aggregates_equal_brute_force(seed: int) -> None:
    rng = random.Random(1000 + seed)
    streams, steps = draw(rng, "AB", 16, 20)
    sources, inputs = windows(rng, [("x", "A"), ("y", rng.choice("AB"))])
    text, test = rng.choice(PAIRS)
    every = rng.choice([1, 3, 7])
    calls = (
        "COUNT(*)",
        "COUNT(y.d)",
        "COUNT(DISTINCT y.k)",
        "SUM(x.u)",
        "MIN(y.d)",
        "MAX(y.s)",
        "MEDIAN(y.u)",
        "AVG(x.u)",
    )
    select = (Item("_ts"), Item("x.k", "g"), *(Item(call, f"a{place}") for place, call in enumerate(calls)))
    spec = QuerySpec(tuple(sources), select, (Condition(text, ()),), ("x.k",), every)
    found = answers(streams, steps, [Lifetime("q", spec)])["q"]
    admitted, ends = one_by_one(streams, steps)
    reached = min((ends.get(s.stream, -1) for s in sources), default=-1)
    expected = []
    for now in range(0, max(reached, 0), every):
        groups: dict[Any, list[dict[str, brute.Values]]] = {}
        for combination in brute.at_instant(inputs, admitted, test, now):
            groups.setdefault(combination["x"]["k"], []).append(combination)
        for key, members in groups.items():
            values = [m["y"]["d"] for m in members if m["y"]["d"] is not None]
            texts = [m["y"]["s"] for m in members if m["y"]["s"] is not None]
            least = min(values, key=lambda v: (brute.is_nan(v), v)) if values else None
            numbers = [m["x"]["u"] for m in members]
            expected.append((
                now, key, len(members), len(values), len({m["y"]["k"] for m in members} - {None}), sum(numbers), least,
                max(texts, default=None), brute.middle([m["y"]["u"] for m in members]), sum(numbers) / len(numbers),
            ))  # fmt: skip
    expect(found.table, expected)


@pytest.mark.parametrize("seed", seeds(CASES))
def test_differences_equal_brute_force(seed: int) -> None:
    rng = random.Random(2000 + seed)
    streams, steps = draw(rng, "ABC", 18, 16)
    aliases = [("x", "A"), ("y", rng.choice("AB")), ("z", "C")][: rng.choice([2, 3])]
    sources, inputs = windows(rng, aliases)
    columns = [("k",), ("d",), ("k", "s")]
    parts = tuple(Subtrahend(source, rng.choice(columns)) for source in sources[1:])
    where = (Condition("x.k >= 0 OR x.k IS NULL", ("x",)), Condition("y.u % 3 <> 0", ("y",)))
    spec = QuerySpec((sources[0],), (Item("x.u"), Item("x.d"), Item("_ts")), where, subtracted=parts)
    found = answers(streams, steps, [Lifetime("q", spec)])["q"]
    admitted, ends = one_by_one(streams, steps)
    reached = min(ends.get(source.stream, -1) for source in sources)
    keep: list[brute.Test] = [lambda r: r["y"]["u"] % 3 != 0, lambda r: True]
    others = [(i, part.columns, keep[place]) for place, (i, part) in enumerate(zip(inputs[1:], parts, strict=True))]
    log = brute.change_log(inputs[0], others, admitted, lambda r: True, reached)
    expect(found.table, [(values["u"], values["d"], now, op) for now, op, values in log])


def test_late_rows_and_dead_letters_are_kept_apart() -> None:
    streams = [StreamSpec("A", SCHEMA, lateness=2), StreamSpec("B", SCHEMA)]
    steps = [
        {"A": make_table([(1, 1.0, "a", 0, 10), (1, 1.0, "a", 1, None)])},
        {"A": make_table([(1, 1.0, "a", 2, 7), (1, 1.0, "a", 3, 8), (1, 1.0, "a", 4, 20), (1, 1.0, "a", 5, 9)])},
        {"B": make_table([(1, 1.0, "b", 6, 5)]), "A": make_table([(1, 1.0, "a", 7, 17)])},
    ]
    found = arrive(streams, steps, [])
    assert found.admitted["A"]["u"].to_pylist() == [0, 3, 5, 4]
    assert found.admitted["A"]["__number"].to_pylist() == [1, 2, 3, 4]
    assert found.late["A"].select(["u", "_watermark"]).to_pylist() == [
        {"u": 2, "_watermark": 8},
        {"u": 7, "_watermark": 18},
    ]
    assert found.dead["A"]["u"].to_pylist() == [1]
    assert found.watermarks == [{"A": 8, "B": None}, {"A": 18, "B": None}, {"A": 18, "B": 5}]
    assert found.query_watermark(frozenset("AB"), 1) is None
    assert found.query_watermark(frozenset("AB"), 2) == 5


def test_an_idle_stream_is_lifted_and_its_rows_are_late_then() -> None:
    streams = [StreamSpec("A", SCHEMA), StreamSpec("B", SCHEMA, idle_timeout=10), StreamSpec("C", SCHEMA)]
    spec = QuerySpec((SourceSpec("A", "A", 5), SourceSpec("B", "B", 5)), (Item("A.u"),))
    steps = [
        {"A": make_table([(1, 1.0, "a", 0, 10)])},
        {"A": make_table([(1, 1.0, "a", 1, 20)])},
        {"A": make_table([(1, 1.0, "a", 2, 21)]), "C": make_table([(1, 1.0, "a", 9, 15)])},
        {"B": make_table([(1, 1.0, "a", 3, 20), (1, 1.0, "a", 4, 21)])},
    ]
    found = arrive(streams, steps, [Lifetime("q", spec)])
    assert [marks["B"] for marks in found.watermarks] == [None, None, 21, 21]
    assert found.late["B"]["u"].to_pylist() == [3]
    with_third = QuerySpec((SourceSpec("B", "B", 5), SourceSpec("C", "C", 5)), (Item("B.u"),))
    found = arrive(streams, steps, [Lifetime("q", spec), Lifetime("r", with_third)])
    assert [marks["B"] for marks in found.watermarks] == [None, None, 15, 21]


def test_a_query_sees_only_its_steps() -> None:
    streams = [StreamSpec("A", SCHEMA), StreamSpec("B", SCHEMA)]
    steps = [{"A": make_table([(1, 1.0, "a", n, n)]), "B": make_table([(1, 1.0, "b", n, n)])} for n in range(4)]
    spec = QuerySpec((SourceSpec("A", "A", 9), SourceSpec("B", "B", 9)), (Item("A.u", "a"), Item("B.u", "b")))
    found = answers(streams, steps, [Lifetime("q", spec, since=1, until=3)])["q"]
    assert sorted(rows(found.table)) == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert found.steps == [1, 2, 2, 2]
    assert_each_step_same([None, found.table.slice(0, 1), found.table.slice(1), None], found)


def test_doubled_names_and_stars() -> None:
    streams = [StreamSpec("A", SCHEMA), StreamSpec("B", SCHEMA)]
    spec = QuerySpec((SourceSpec("x", "A"), SourceSpec("B", "B")), (Item("*"), Item("B.k")), window=5)
    found = answers(streams, [{}], [Lifetime("q", spec)])["q"]
    assert found.table.column_names == ["k", "d", "s", "u", "ts", "k_1", "d_1", "s_1", "u_1", "ts_1", "k_2"]
    assert spec.cql() == "SELECT *, B.k FROM A AS x, B WINDOW 5 MICROSECONDS"


def test_differences_between_tables_are_seen() -> None:
    one = pa.table({"k": [1, 1, None], "d": [1.0, NAN, -0.0]})
    assert not difference(one, pa.table({"k": [None, 1, 1], "d": [0.0, NAN, 1.0]}))
    assert "missing (1): (1, 1.0)" in difference(one.slice(1), one)
    assert "too many (1)" in difference(pa.concat_tables([one, one.slice(0, 1)]), one)
    assert difference(one, one.rename_columns(["k", "e"]))
    assert difference(one, one.set_column(1, "d", pa.array([1, 2, 3])))
    nearly = pa.table({"k": [1, 1, None], "d": [math.nextafter(1.0, 2.0), NAN, 0.0]})
    assert difference(nearly, one)
    assert not difference(nearly, one, ["d"])
    assert difference(one.set_column(1, "d", pa.array([1.1, NAN, 0.0])), one, ["d"])
