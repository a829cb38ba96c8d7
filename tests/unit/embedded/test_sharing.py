"""Sharing: queries of one join share its rows, whatever their windows and filters, unless sharing is off."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import QueryError
from midstream.model.ids import CounterKey
from tests.unit.building import both, engine, table

ONE = "SELECT A.j AS a, B.j AS b FROM A [RANGE 9 SECONDS], B [RANGE 9 SECONDS] WHERE A.k = B.k AND A.v > 0"
TWO = "SELECT x.s, y.v FROM A [RANGE 9 SECONDS] x, B [RANGE 9 SECONDS] y WHERE x.v > 0 AND y.k = x.k"


def chunks(made: Any) -> list[str]:
    return [
        ref.name for lane in made.manifest.lane_states.values() for s in lane.states.values() for ref in s.chunks
    ]  # fmt: skip


def bases(made: Any) -> list[str]:
    return sorted({i for lane in made.manifest.lane_states.values() for i in lane.states if i.endswith(".rows")})


def pushed(sharing: str, **queries: str) -> Any:
    made = engine("ABC", sharing=sharing)
    for name, sql in queries.items():
        made.add_query(name, sql)
    for step in range(3):
        made.push(both("ABC", table([step, step], k=[1, 2], j=[1, 2], v=[1.0, 2.0], s=["x", "y"])))
    return made


def test_equal_queries_share_all_their_chunks() -> None:
    alone, shared, apart = pushed("auto", a=ONE), pushed("auto", a=ONE, b=TWO), pushed("off", a=ONE, b=TWO)
    assert len(chunks(shared)) == len(chunks(alone))
    assert len(chunks(apart)) == 2 * len(chunks(alone))
    assert len(set(chunks(apart))) == len(chunks(apart))
    assert shared.metrics()["state_rows"] == alone.metrics()["state_rows"]
    assert apart.metrics()["state_rows"] == 2 * alone.metrics()["state_rows"]
    assert shared.metrics()["comparisons"] == alone.metrics()["comparisons"], "the work is done once"
    assert apart.metrics()["comparisons"] == 2 * alone.metrics()["comparisons"]
    assert shared.metrics()["queries"]["b"]["state_rows"] == shared.metrics()["state_rows"]


@pytest.mark.parametrize(
    "other",
    [
        ONE.replace("9 SECONDS], B", "8 SECONDS], B"),
        ONE.replace("A.v > 0", "A.v > 1"),
        ONE.replace(" AND A.v > 0", ""),
    ],
)
def test_other_windows_and_filters_share_their_rows(other: str) -> None:
    both_of, one, two = pushed("auto", a=ONE, b=other), pushed("auto", a=ONE), pushed("auto", b=other)
    assert len(bases(both_of)) == 2, "one for each stream"
    assert both_of.metrics()["state_rows"] == max(one.metrics()["state_rows"], two.metrics()["state_rows"])


def test_windows_of_another_kind_are_kept_apart() -> None:
    other = ONE.replace("[RANGE 9 SECONDS], B", "[ROWS 9], B")
    both_of, one, two = pushed("auto", a=ONE, b=other), pushed("auto", a=ONE), pushed("auto", b=other)
    assert len(bases(both_of)) == 4
    total = both_of.metrics()["queries"]
    assert total["a"]["state_rows"] == one.metrics()["state_rows"]
    assert total["b"]["state_rows"] == two.metrics()["state_rows"]


def test_a_query_that_began_later_meets_what_is_held() -> None:
    made = pushed("auto", a=ONE)
    made.add_query("b", ONE)
    made.add_query("c", ONE, history=False)
    out = made.push(both("ABC", table([3], k=[1], j=[3], v=[1.0])))
    assert [out[name].num_rows for name in "abc"] == [7, 7, 1]
    assert len(bases(made)) == 2


def test_rows_without_a_reader_are_purged() -> None:
    made = pushed("auto", a=ONE, b=TWO)
    before = chunks(made)
    made.drop_query("a")
    made.push()
    assert sorted(chunks(made)) == sorted(before), "the other one still reads it"
    made.drop_query("b")
    made.push()
    assert chunks(made) == []
    assert len(made._store) == 0


MIXED = {
    "rows": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS], C [ROWS 1] "
    "WHERE A.v <= B.v AND B.v <= C.v",
    "range": "SELECT A.j AS a, B.j AS b, C.j AS c FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS], C [RANGE 3 SECONDS] "
    "WHERE A.v <= B.v AND B.v <= C.v",
    "key": "SELECT A.j AS a, B.j AS b FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.s = B.s AND A.v <> B.v",
    "two": "SELECT A.j AS a, B.j AS b FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.s = B.s AND A.k = B.k",
    "one": "SELECT A.j AS a, B.j AS b FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.k = B.k",
    "left": "SELECT A.j AS a, _ts FROM A [RANGE 3 SECONDS] "
    "EXCEPT ON (k) B [RANGE 3 SECONDS] EXCEPT ON (s) C [RANGE 3 SECONDS]",
    "count": "SELECT COUNT(*) AS a, _ts FROM A [RANGE 3 SECONDS], B [RANGE 3 SECONDS] WHERE A.v <= B.v EVERY 1 SECOND",
}


def answers(names: tuple[str, ...], sharing: str, *, slow: bool, migrate: bool) -> dict[str, list[str]]:
    """The answers over ten steps with NULL keys; `slow`: C comes seven seconds behind; some queries migrate."""
    made = engine("ABC", sharing=sharing)
    for name in names:
        made.add_query(name, MIXED[name])
    found: dict[str, list[str]] = {name: [] for name in names}
    for step in range(15):
        if migrate and step in (6, 11) and "range" in names:
            made.migrate("range", "(A (B C))" if step == 6 else "((A B) C)")
        if step == 9:
            made.rescale(2)
        number = range(3 * step, 3 * step + 3)
        keys: dict[str, list[Any]] = {
            "k": [step % 2, None, 1],
            "s": ["x", None if step % 2 else "y", "x"],
            "v": [step % 3, 1.0, None],
        }
        rows = {name: table([step + 0.1 * i for i in range(3)], j=number, **keys) for name in "AB"}
        behind = step - 7 if slow else step
        if behind >= 0:
            rows["C"] = table([behind + 0.1 * i for i in range(3)], j=number, **keys)
        for name, answer in made.push(rows).items():
            found[name] += map(str, answer.to_pylist())
    return {name: sorted(rows) for name, rows in found.items()}


PAIRS = [("rows", "range"), ("range", "count"), ("two", "one"), ("key", "two"), ("one", "left"), ("key", "left")]
"""Those that have something in common."""


class _Alone(dict[tuple[str, bool], list[str]]):
    """Answers of one query by itself, without migrations, made when first asked for."""

    def __missing__(self, key: tuple[str, bool]) -> list[str]:
        name, slow = key
        self[key] = answers((name,), "off", slow=slow, migrate=False)[name]
        return self[key]


ALONE = _Alone()


def test_rows_that_go_with_the_query_of_the_widest_window_count_once_as_purged() -> None:
    made = engine("AB", sharing="auto")
    made.add_query("narrow", ONE.replace("9 SECONDS", "4 SECONDS"))
    made.add_query("wide", ONE)
    for step in range(0, 24, 3):
        if step == 12:
            made.drop_query("wide")
        made.push(both("AB", table([step, step + 1], k=[1, 2], v=[1.0, 2.0])))
        for lane, state in made.manifest.lane_states.items():
            for name, listing in state.states.items():
                counted = made.manifest.operators[CounterKey(lane.group, name.counted)]
                assert counted.inserted - counted.purged == listing.live, (step, name)


@pytest.mark.parametrize("slow", [False, True], ids=["together", "one behind"])
@pytest.mark.parametrize("pair", [*PAIRS, tuple(MIXED)], ids=" ".join)
def test_a_query_answers_as_it_would_alone(pair: tuple[str, ...], slow: bool) -> None:
    """Whoever runs beside it, with other windows, other keys, slower streams, migrations and a rescale."""
    together = answers(pair, "auto", slow=slow, migrate=True)
    for name in pair:
        assert together[name] == ALONE[name, slow], name
        assert ALONE[name, slow]


THREE = {
    "short": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS",
    "middle": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k AND A.v > 3 WINDOW 20 SECONDS",
    "long": "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k AND A.v > 3 AND A.j < 7 AND B.v < 9 WINDOW 60 SECONDS",
}


def run_of_three(sharing: str) -> tuple[list[dict[str, list[dict[str, Any]]]], Any]:
    made = engine("AB", sharing=sharing)
    for name, sql in THREE.items():
        made.add_query(name, sql)
    steps = [both("AB", table([at, at + 1], j=[at % 8, 2], k=[1, 2], v=[at % 11, 1.0])) for at in range(0, 80, 2)]
    return [{name: rows.to_pylist() for name, rows in made.push(step).items()} for step in steps], made


@pytest.mark.parametrize("sharing", ["mem_opt", "cpu_opt", "pull_up", "push_down"])
def test_rows_go_from_the_middle_of_what_is_held(sharing: str) -> None:
    """Rows that only the short window wanted leave gaps between those that the long one wants."""
    found, _ = run_of_three(sharing)
    expected, _ = run_of_three("off")
    for mine, theirs in zip(found, expected, strict=True):
        assert {n: sorted(map(str, rows)) for n, rows in mine.items()} == {
            n: sorted(map(str, rows)) for n, rows in theirs.items()
        }


def test_rows_that_no_query_selects_are_not_kept() -> None:
    _, made = run_of_three("mem_opt")
    for lane in made.manifest.lane_states.values():
        for name, listing in lane.states.items():
            stored = sum(ref.rows for ref in listing.chunks)
            assert stored <= 2 * listing.live + 16, name


def test_what_a_wider_window_left_behind_is_no_answer() -> None:
    """A query leaves the chain for a plan that keeps combinations, and then the one with the wider window goes."""
    sql = "SELECT A.j AS a, B.j AS b, C.j AS c FROM A [ROWS 8], B [ROWS 8], C [ROWS {}] WHERE A.k = B.k AND B.k = C.k"
    found = {}
    for sharing in ("mem_opt", "off"):
        made = engine("ABC", sharing=sharing)
        made.add_query("narrow", sql.format(1))
        made.add_query("wide", sql.format(3))
        made.push({"B": table([0], j=[1], k=[1]), "C": table([0, 1, 2], j=[1, 2, 3], k=[1, 1, 1])})
        made.migrate("narrow", "stairs((A (B C)))", "moving_state")
        made.push()
        made.drop_query("wide")
        found[sharing] = made.push({"A": table([3], j=[1], k=[1])})["narrow"].to_pylist()
    assert found["mem_opt"] == found["off"] == [{"a": 1, "b": 1, "c": 3}]


def test_a_source_has_room_for_so_many_filters() -> None:
    """One more begins by itself; a running query is not changed to it."""
    sql = "SELECT A.j AS a FROM A, B WHERE A.k = B.k AND A.v > {} WINDOW 9 SECONDS"
    made = engine("AB")
    for number in range(62):
        made.add_query(f"q{number}", sql.format(number))
    with pytest.raises(QueryError, match="a source cannot have more than"):
        made.change_query("q0", sql.format(100))
    made.add_query("more", sql.format(99.5))
    out = made.push(both("AB", table([1], j=[1], k=[1], v=[99.7])))
    assert {name: rows.num_rows for name, rows in out.items()} == dict.fromkeys(out, 1)
    assert len(bases(made)) == 4 and not made.manifest.queries["more"].shares


@pytest.mark.parametrize("history", [True, False])
def test_a_query_that_is_added_joins_rows_that_come_out_of_order(history: bool) -> None:
    """It reads a column that nobody has kept, so of rows from before it sees none, and of later ones all."""

    def rows(*found: tuple[int, int, int]) -> pa.Table:
        ids, seconds, keys = zip(*found, strict=True)
        times = pa.array([second * 10**6 for second in seconds], pa.timestamp("us"))
        return pa.table({"id": ids, "ts": times, "k": keys, "v": [5] * len(found)})

    engine, ab = ms.Engine(), "SELECT A.id AS a, B.id AS b FROM A, B WHERE A.k = B.k"
    for stream in "AB":
        engine.create_stream(
            stream, "id BIGINT, ts TIMESTAMP, k BIGINT, v BIGINT", timestamp="ts", lateness="12 seconds"
        )
    engine.add_query("running", f"{ab} WINDOW 2 SECONDS")
    engine.push({"A": rows((1, 20, 7)), "B": rows((2, 20, 8))})
    engine.add_query("added", f"{ab} AND A.v < 40 WINDOW 1 SECONDS", history=history)
    for number, second in enumerate((15, 16, 25)):
        batch = {"A": rows((10 + number, second, number)), "B": rows((20 + number, second, number))}
        assert engine.push(batch)["added"].to_pylist() == [{"a": 10 + number, "b": 20 + number}]
