"""A query that reads another's answers: what holds of its stream, beside what the random cases compare."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.schema import StreamSchema
from midstream.pipeline.reconcile import with_streams

SCHEMA = "k BIGINT, v BIGINT, ts TIMESTAMP"
W = "[RANGE 20 SECONDS]"
JOINED = f"SELECT A.k, A.v + B.v + C.v AS s, _ts AS t FROM A {W}, B {W}, C {W} WHERE A.k = B.k AND B.k = C.k"

SECOND = StreamSchema("joined", pa.schema([("k", pa.int64()), ("s", pa.int64()), ("ts", pa.timestamp("us"))]), "ts")


def rows(*seconds: int) -> pa.Table:
    times = pa.array([second * 1_000_000 for second in seconds], pa.timestamp("us"))
    return pa.table({"k": [s % 2 for s in seconds], "v": list(seconds), "ts": times})


def engine(**options: object) -> ms.Engine:
    made = ms.Engine(**options)  # type: ignore[arg-type]
    for name in "ABC":
        made.create_stream(name, SCHEMA, timestamp="ts")
    made.add_query("joined", JOINED)
    return made


def pushed(one: ms.Engine, second: int) -> dict[str, list[object]]:
    given = {name: rows(second) for name in "ABC"}
    return {name: table.to_pylist() for name, table in one.push(given).items()}


def test_what_a_migration_holds_back_comes_in_time_for_a_window() -> None:
    counted = (
        "SELECT COUNT(*) AS n, SUM(s) AS s, window_end AS ended FROM joined GROUP BY TUMBLE(t, INTERVAL 5 SECONDS)"
    )
    found = []
    for strategy in ("moving_state", "parallel_track"):
        one = engine()
        one.add_query("counted", counted)
        answers = []
        for second in range(0, 90, 2):
            if second == 10:
                options = {"hold_new": True} if strategy == "parallel_track" else {}
                one.migrate("joined", plan="((B C) A)", strategy=strategy, **options)
            answers += pushed(one, second)["counted"]
        found.append(answers)
    assert found[0] == found[1] and len(found[0]) > 12


def test_a_stream_of_answers_is_there_as_long_as_a_query_reads_it() -> None:
    one = engine()
    one.add_query("again", "SELECT k, s FROM joined")
    one.add_query("thrice", f"SELECT x.k, A.v FROM joined x {W}, A {W} WHERE x.k = A.k")
    assert pushed(one, 1)["again"] == [{"k": 1, "s": 3}]
    with pytest.raises(ms.QueryError, match="cannot be dropped while queries read its answers: again, thrice"):
        one.drop_query("joined")
    with pytest.raises(ms.InputError, match="no stream 'joined'"):
        one.push({"joined": rows(2)})
    one.drop_query("again")
    one.drop_query("thrice")
    one.drop_query("joined")
    assert pushed(one, 2) == {}


@pytest.mark.parametrize("on_checkpoint", [False, True], ids=["in memory", "on a checkpoint"])
def test_no_stream_gets_the_name_of_answers_that_are_read(tmp_path: Path, on_checkpoint: bool) -> None:
    options = {"checkpoint": str(tmp_path / "c")} if on_checkpoint else {}
    one = engine(**options)
    one.add_query("again", "SELECT k, s FROM joined")
    for second in (1, 2):
        for name in ("joined", "Joined"):
            with pytest.raises(ms.MidstreamError, match=r"a query (is called )?'joined'") as refused:
                one.create_stream(name, "k BIGINT, s BIGINT, ts TIMESTAMP", timestamp="ts")
            assert refused.value.remedy
        found = pushed(one, second)
        assert found["again"] and found["again"] == [{"k": row["k"], "s": row["s"]} for row in found["joined"]]
    one.close()
    if on_checkpoint:
        with pytest.raises(ms.QueryError, match="there is already a query 'joined'"):
            with_streams(one.manifest, {**one.manifest.pushed_streams, "joined": SECOND}, "a job that starts again")
        with ms.Engine(checkpoint=str(tmp_path / "c")) as again:
            assert pushed(again, 3)["again"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT k FROM joined [ROWS 3], A [ROWS 3] WHERE joined.k = A.k",
            "cannot have a ROWS window",
        ),
        ("SELECT zz FROM joined", "unknown column 'zz'"),
        ("SELECT k FROM joind", "unknown stream 'joind'"),
        ("SELECT x.k FROM joined x, A WHERE x.k = A.k", "has no window"),
    ],
)
def test_what_cannot_be_read_of_answers_is_told(text: str, message: str) -> None:
    with pytest.raises(ms.MidstreamError, match=message):
        engine().add_query("q", text)


def test_the_time_of_answers_that_select_none_is_shown() -> None:
    one = engine()
    one.add_query("counts", f"SELECT k, COUNT(*) AS n FROM A {W} GROUP BY k EVERY 10 SECONDS")
    one.add_query("late_counts", "SELECT n, result_time FROM counts")
    one.push({"A": rows(1)})
    found = one.push({"A": rows(11)})["late_counts"].to_pylist()
    assert [(row["n"], row["result_time"].second) for row in found] == [(1, 10)]


@pytest.mark.parametrize("name", ["_ts", "result_time", "Result_Time"])
def test_a_column_may_be_called_as_the_time_of_answers_is(name: str) -> None:
    one = engine()
    one.add_query("named", f"SELECT k AS {name}, v FROM A")
    one.add_query("read", "SELECT * FROM named")
    assert one.push({"A": rows(1, 2, 3)})["read"].column(0).to_pylist() == [1, 0, 1]


def test_queries_of_all_levels_go_on_where_a_checkpoint_was_left(tmp_path: Path) -> None:
    whole, answers = engine(), []
    for part in (whole, engine(checkpoint=str(tmp_path / "c"))):
        part.add_query("twice", f"SELECT x.k, y.s FROM joined x {W}, joined y {W} WHERE x.k = y.k AND x.s < y.s")
        part.add_query(
            "counted", "SELECT k, COUNT(*) AS n FROM twice GROUP BY k, TUMBLE(result_time, INTERVAL 4 SECONDS)"
        )
        found = []
        for second in range(0, 60, 3):
            if part is not whole and second in (21, 42):
                part.close()
                part = ms.Engine(checkpoint=str(tmp_path / "c"))
            found.append(pushed(part, second))
        part.close()
        answers.append(found)
    assert answers[0] == answers[1] and any(step["counted"] for step in answers[0])


def test_an_idle_stream_holds_no_query_that_reads_it_through_another() -> None:
    one = ms.Engine()
    one.create_stream("A", SCHEMA, timestamp="ts", idle_timeout="10 seconds")
    one.create_stream("B", SCHEMA, timestamp="ts")
    one.add_query("pairs", f"SELECT A.k, _ts AS t FROM A {W}, B {W} WHERE A.k = B.k")
    one.add_query("counted", "SELECT COUNT(*) AS n FROM pairs GROUP BY TUMBLE(t, '5 seconds')")
    one.add_query("again", f"SELECT p.k FROM pairs p {W}, A {W} WHERE p.k = A.k")
    one.push({"A": rows(1), "B": rows(1)})
    found = [one.push({"B": rows(second)})["counted"].to_pylist() for second in (3, 5, 30, 40)]
    assert sum(map(len, found)) == 2 and found[0] == []


def test_three_streams_joined_with_two_subqueries() -> None:
    one = engine()
    counts = "SELECT k, COUNT(*) AS n FROM {} GROUP BY k, TUMBLE(ts, '5 seconds')"
    one.add_query(
        "q",
        f"SELECT A.k, x.n, y.n AS m FROM A {W} JOIN ({counts.format('B')}) AS x {W} ON A.k = x.k "
        f"JOIN ({counts.format('C')}) AS y {W} ON A.k = y.k",
    )
    found = [row for second in (1, 3, 11, 13) for row in pushed(one, second)["q"]]
    assert {(row["k"], row["n"], row["m"]) for row in found} == {(1, 2, 2)}  # type: ignore[index]
