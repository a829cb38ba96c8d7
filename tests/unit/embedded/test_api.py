"""The public face, call by call, as the API page promises it."""

from __future__ import annotations

import datetime
import json
from dataclasses import FrozenInstanceError, fields

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import MigrationBegun, QueryAdded, QueryDropped, RowsLate, RowsRejected, StepDone
from midstream.model.schema import StreamSchema
from tests.unit.building import COLUMNS, DDL, both, engine, table

PAIRS = """
    SELECT A.k, A.v, B.v AS w FROM A [RANGE 20 SECONDS], B [RANGE 20 SECONDS], C [RANGE 20 SECONDS]
    WHERE A.k = B.k AND B.k = C.k AND A.v > 0.5"""


def test_the_example_of_the_api_page() -> None:
    made = ms.Engine(seed=0, sharing="auto")
    for name in "ABC":
        made.create_stream(name, COLUMNS, timestamp="ts", lateness="0 seconds")
    made.add_query("pairs", PAIRS, plan="((A B) C)")
    rows = table([1, 2], k=[1, 2], v=[0.4, 0.6])
    assert made.push({"A": rows, "B": rows})["pairs"].num_rows == 0
    out = made.push({"C": table([3], k=[2], v=[9.0])})
    assert isinstance(out["pairs"], pa.Table)
    assert out["pairs"].to_pylist() == [{"k": 2, "v": 0.6, "w": 0.6}]
    made.migrate("pairs", plan="(A (B C))", strategy="moving_state")
    assert made.migration("pairs") is None
    assert made.push({"A": table([4], k=[2], v=[0.7])})["pairs"].to_pylist() == [{"k": 2, "v": 0.7, "w": 0.6}]
    assert "(A (B C))" in made.explain("pairs")
    made.drop_query("pairs")
    assert made.push({"A": rows}) == {}


def test_a_schema_is_arrow_or_ddl() -> None:
    one, other = ms.Engine(), ms.Engine()
    one.create_stream("A", DDL, timestamp="ts")
    other.create_stream("A", COLUMNS, timestamp="ts")
    assert one.manifest.streams == other.manifest.streams


@pytest.mark.parametrize("given", ["90 seconds", "1.5 minutes", 90_000_000, datetime.timedelta(seconds=90)])
def test_durations_are_text_microseconds_or_timedeltas(given: str | int) -> None:
    made = ms.Engine()
    made.create_stream("A", DDL, timestamp="ts", lateness=given, idle_timeout=given)
    assert made.manifest.streams["A"] == StreamSchema("A", COLUMNS, "ts", 90_000_000, 90_000_000)


def test_a_plan_is_optional() -> None:
    made = engine("ABC")
    made.add_query("q", PAIRS)
    assert made.explain("q", format="json")["plan"] == "((A B) C)"


def test_a_push_may_bring_nothing_some_streams_or_other_columns() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A")
    assert made.push()["q"].num_rows == made.push({})["q"].num_rows == made.push({"B": table([1])})["q"].num_rows == 0
    rows = table([1], k=[5]).append_column("more", pa.array(["x"])).select(["ts", "more", "v", "s", "j", "k"])
    assert made.push({"A": rows})["q"].to_pylist() == [{"k": 5}]
    assert made.push({"A": COLUMNS.empty_table()})["q"].schema == pa.schema([("k", pa.int64())])


def test_a_query_sees_the_rows_from_the_next_push_on() -> None:
    made = engine("AB")
    made.push({"A": table([1], k=[1])})
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    assert made.push({"B": table([1], k=[1])})["q"].num_rows == 0
    assert made.push({"A": table([1], k=[1])})["q"].num_rows == 1


def test_metrics_are_exact() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS")
    made.add_query("p", "SELECT A.k FROM A WHERE A.k > 1")
    made.push({"A": table([1, 2], k=[1, 2]), "B": table([1, 2, 2], k=[1, 1, 3])})
    found = made.metrics()
    assert json.loads(json.dumps(found)) == found
    assert found["state_rows"] == 5
    assert found["queries"]["q"]["comparisons"] == found["comparisons"] == 2
    assert (found["queries"]["q"]["rows_in"], found["queries"]["q"]["rows_out"]) == (5, 2)
    assert (found["queries"]["p"]["rows_in"], found["queries"]["p"]["rows_out"]) == (2, 1)
    assert found["queries"]["p"]["state_rows"] == 0
    assert found["state_bytes"] >= found["queries"]["q"]["state_bytes"] > 0
    assert (
        sum(ref.bytes for lane in made.manifest.lane_states.values() for s in lane.states.values() for ref in s.chunks)
        == (found["state_bytes"])
    )


@pytest.mark.parametrize("lanes", [1, 3])
def test_rows_in_are_those_that_came_in_and_rows_out_the_results(lanes: int) -> None:
    """However many operators they went through; answers that queries read did not come from outside, and parts of a
    query give no results of their own.
    """
    made = ms.Engine(lanes=lanes)
    for stream in "ABC":
        made.create_stream(stream, COLUMNS, timestamp="ts", lateness=0)
    made.add_query("q", "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 20 SECONDS")
    made.add_query("p", "SELECT A.k FROM A WHERE A.k > 1")
    made.add_query("r", "SELECT p.k FROM p [RANGE 1 SECOND]")
    sub = "SELECT x.k FROM (SELECT k, COUNT(*) AS n FROM A GROUP BY k, TUMBLE(ts, '1 second')) AS x"
    made.add_query("s", sub)
    results = 0
    for second in range(1, 4):
        pushed = {stream: table([second] * 4, k=[1, 2, 3, 4]) for stream in "ABC"}
        results += sum(found.num_rows for found in made.push(pushed).values())
    made.push({"A": table([1], k=[1]), "B": table([4], k=[None])})
    found = made.metrics()
    assert (found["rows_in"], found["rows_out"]) == (3 * 12 + 1, results)


def test_events_are_frozen_and_in_order() -> None:
    made = engine("AB", lateness=0)
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS")
    made.push({"A": table([5], k=[1])})
    made.migrate("q", "(B A)")
    made.push({"A": table([4, None], k=[1, 1])})
    made.drop_query("q")
    made.push()
    assert next(type(event) for event in made.events if event.step == 1) is MigrationBegun
    kinds = [type(event) for event in made.events]
    assert kinds[0] is QueryAdded
    assert kinds.count(StepDone) == 3
    assert kinds.index(RowsLate) < kinds.index(RowsRejected)
    assert kinds[-2:] == [QueryDropped, StepDone]
    assert [event.step for event in made.events] == sorted(event.step for event in made.events)
    assert isinstance(made.events, tuple)
    with pytest.raises(FrozenInstanceError):
        made.events[0].step = 9
    done = [event for event in made.events if isinstance(event, StepDone)]
    assert done[1] == StepDone(1, {"A": 0, "B": 0}, {"q": 0}, 0, 1, {"A": 5_000_000, "B": None})
    assert {f.name for f in fields(RowsLate)} == {"step", "stream", "rows", "watermark"}


def test_late_rows_and_dead_letters_by_stream() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A")
    assert dict(made.late) == dict(made.dead_letters) == {}
    made.push({"A": table([5], k=[1])})
    assert made.push({"A": table([4, 5, None], k=[2, 3, 4])})["q"].to_pylist() == [{"k": 3}]
    made.push({"A": table([3], k=[5])})
    assert made.late["A"].column("k").to_pylist() == [2, 5]
    assert made.late["A"].column("_watermark").cast(pa.int64()).to_pylist() == [5_000_000] * 2
    assert made.dead_letters["A"].column("k").to_pylist() == [4]
    assert made.dead_letters["A"].column("_reason").to_pylist() == ["timestamp column 'ts' is NULL"]
    assert "B" not in made.late
    with pytest.raises(TypeError):
        made.late["A"] = None


def test_dead_letters_of_unlike_types_are_kept_together() -> None:
    made = engine("A")
    made.add_query("q", "SELECT A.k FROM A")
    first = table([1]).set_column(0, "k", pa.array(["bad"]))
    second = pa.concat_tables([table([2, 3])]).set_column(0, "k", pa.array([1.5, 2.0]))
    made.push({"A": first})
    assert made.push({"A": second})["q"].to_pylist() == [{"k": 2}]
    assert list(map(str, made.dead_letters["A"].column("k").to_pylist())) == ["bad", "1.5"]


def test_lateness_lets_rows_come_out_of_order() -> None:
    made = engine("AB", lateness=3_000_000)
    made.add_query("q", "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k WINDOW 2 SECONDS")
    made.push({"A": table([10], k=[1], j=[0])})
    assert made.push({"B": table([8, 7], k=[1, 1], j=[1, 2])})["q"].to_pylist() == [{"a": 0, "b": 1}]
    assert made.push({"A": table([7, 6.9], k=[1, 1], j=[3, 4])})["q"].num_rows == 2
    assert made.late["A"].column("j").to_pylist() == [4]


def test_an_idle_stream_lets_the_others_go_on() -> None:
    made = engine("AB", idle_timeout=5_000_000)
    made.add_query("q", "SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS EVERY 5 SECONDS")
    made.push(both("AB", table([1], k=[1])))
    assert made.push({"A": table([6], k=[7])})["q"].num_rows == 0
    assert made.push({"A": table([6.5], k=[7])})["q"].to_pylist() == [{"n": 1}]


def test_results_come_in_order_of_time() -> None:
    made = engine("AB", lanes=3)
    made.add_query("q", "SELECT _ts FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    out = made.push({"A": table([5, 1, 3, 2], k=[0, 1, 2, 3]), "B": table([4, 0, 2, 6], k=[0, 1, 2, 3])})["q"]
    assert [row["_ts"].second for row in out.to_pylist()] == [1, 3, 5, 6]


def test_a_stream_may_come_while_queries_run() -> None:
    made = engine("A")
    made.add_query("q", "SELECT A.k FROM A")
    made.push({"A": table([1], k=[1])})
    made.create_stream("B", DDL, timestamp="ts")
    made.add_query("p", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS")
    out = made.push({"A": table([2], k=[2]), "B": table([2], k=[2])})
    assert (out["q"].num_rows, out["p"].num_rows) == (1, 1)


def test_a_stream_without_queries_needs_no_column() -> None:
    made = engine("AB")
    assert made.push({"A": table([1], k=[1])}) == {}
    assert made.metrics()["state_rows"] == 0
    assert made.manifest.progress["A"].rows == 1


def test_many_rows_of_one_key() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.j AS a, B.j AS b FROM A, B WHERE A.k = B.k AND A.j = B.j WINDOW 9 SECONDS")
    rows = table([1] * 3000, k=[7] * 3000, j=range(3000))
    out = made.push(both("AB", rows))["q"]
    assert out.num_rows == 3000
    assert out.column("a").to_pylist() == out.column("b").to_pylist()


def test_nothing_grows_on_an_endless_stream() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 3 SECONDS")
    sizes = []
    for step in range(60):
        made.push(both("AB", table([step, step + 0.5], k=[step % 3, 1])))
        manifest = made.manifest
        chunks = sum(len(s.chunks) for lane in manifest.lane_states.values() for s in lane.states.values())
        sizes.append((made.metrics()["state_rows"], len(made._store), chunks))
    assert max(sizes[40:]) <= max(sizes[15:40])
    assert sizes[-1][0] <= 2 * 10
    assert all(held == listed for _, held, listed in sizes), "no chunk is held that no manifest lists"
