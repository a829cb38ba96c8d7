"""What cannot be evaluated is a dead letter, and the answer is that of the rest: as DuckDB has both, whatever happens.

DuckDB is asked with TRY_CAST: a value is missing where a text is there and its number is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import midstream as ms
from midstream.model.errors import MidstreamError
from tests.drawing import drawing
from tests.duck import database

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

SECOND = 1_000_000
US = pa.timestamp("us")
WINDOW = 6
DDL = "k BIGINT, ts TIMESTAMP, s VARCHAR, w DECIMAL(38, 0)"
JOIN = "A.k = B.k AND B.k = C.k"
WITHIN = " AND ".join(f"abs(epoch_us({x}.ts) - epoch_us({y}.ts)) <= {WINDOW * SECOND}" for x, y in ("AB", "BC", "AC"))
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "((B C) A)")


def fails(text: str) -> str:
    """Where the text is not a number, in the words of DuckDB."""
    return f"({text} IS NOT NULL AND TRY_CAST({text} AS INT) IS NULL)"


@dataclass(frozen=True)
class Case:
    """A query of ours, and what DuckDB is asked for the same: the answer, and the dead letters by their columns."""

    name: str
    select: str
    where: str
    answer: str
    holds: str
    dead: str

    @property
    def sql(self) -> str:
        return f"SELECT {self.select} FROM A, B, C WHERE {self.where} WINDOW {WINDOW} SECONDS"

    @property
    def expected(self) -> str:
        return f"SELECT {self.answer} FROM A, B, C WHERE {self.holds} AND {WITHIN}"


def combinations(condition: str, failing: str) -> str:
    """Dead letters that are combinations."""
    return f"SELECT A.ts, B.ts, C.ts FROM A, B, C WHERE {condition} AND {failing} AND {WITHIN}"


def rows(stream: str, condition: str) -> str:
    """Dead letters that are rows."""
    times = ", ".join(f"{stream}.ts" if one == stream else "NULL::TIMESTAMP" for one in "ABC")
    return f"SELECT {times} FROM {stream} WHERE {condition}"


TIMES = "A.ts AS a, B.ts AS b, C.ts AS c"
CUBE = "(A.w IS NOT NULL AND abs(A.w::DOUBLE) > 1e30)"
CASES_ASKED = (
    Case("selection", TIMES, f"{JOIN} AND CAST(A.s AS INT) > 2 AND A.k > 0", TIMES,
         f"{JOIN} AND TRY_CAST(A.s AS INT) > 2 AND A.k > 0", rows("A", f"A.k > 0 AND {fails('A.s')}")),
    Case("output", f"{TIMES}, CAST(B.s AS INT) + 1 AS x", JOIN, f"{TIMES}, TRY_CAST(B.s AS INT) + 1 AS x",
         f"{JOIN} AND NOT {fails('B.s')}", combinations(JOIN, fails("B.s"))),
    Case("between", TIMES, f"{JOIN} AND CAST(A.s || C.s AS INT) > 20", TIMES,
         f"{JOIN} AND TRY_CAST(A.s || C.s AS INT) > 20", combinations(JOIN, fails("(A.s || C.s)"))),
    Case("key", TIMES, "CAST(A.s AS BIGINT) = B.k AND B.k = C.k", TIMES,
         "TRY_CAST(A.s AS BIGINT) = B.k AND B.k = C.k", rows("A", fails("A.s"))),
    Case("or", TIMES, f"{JOIN} AND (C.k = 1 OR CAST(C.s AS INT) > 2)", TIMES,
         f"{JOIN} AND (C.k = 1 OR coalesce(TRY_CAST(C.s AS INT) > 2, FALSE))",
         rows("C", f"coalesce(C.k, 0) <> 1 AND {fails('C.s')}")),
    Case("case", f"{TIMES}, CASE WHEN B.k = 1 THEN CAST(A.s AS INT) ELSE 0 END AS x", JOIN,
         f"{TIMES}, CASE WHEN B.k = 1 THEN TRY_CAST(A.s AS INT) ELSE 0 END AS x",
         f"{JOIN} AND NOT (B.k = 1 AND {fails('A.s')})", combinations(JOIN, f"B.k = 1 AND {fails('A.s')}")),
    Case("is null", TIMES, f"{JOIN} AND CAST(A.s AS INT) IS NULL", TIMES, f"{JOIN} AND A.s IS NULL",
         rows("A", fails("A.s"))),
    Case("range", TIMES, f"{JOIN} AND CAST(A.s AS INT) - B.k BETWEEN 0 AND 1", TIMES,
         f"{JOIN} AND TRY_CAST(A.s AS INT) - B.k BETWEEN 0 AND 1", rows("A", fails("A.s"))),
    Case("overflow", f"{TIMES}, A.w * 1000000000 AS x", JOIN, f"{TIMES}, A.w * 1000000000 AS x",
         f"{JOIN} AND NOT {CUBE}", combinations(JOIN, CUBE)),
)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pa.Table]:
    """Rows in order of time, each at a time of its own within its stream, so that times name rows."""
    found = {}
    for stream in "ABC":
        count = draw(st.integers(3, 14), label=f"rows of {stream}")
        gaps = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count))
        times = [sum(gaps[: n + 1]) * SECOND for n in range(count)]
        keys = draw(st.lists(st.sampled_from([0, 1, 1, 2, 2, None]), min_size=count, max_size=count))
        texts = draw(st.lists(st.sampled_from(["1", "2", "3", " 4 ", "x", "", None]), min_size=count, max_size=count))
        wide = draw(st.lists(st.sampled_from([1, -7, 10**35, None]), min_size=count, max_size=count))
        found[stream] = pa.table(
            {"k": pa.array(keys, pa.int64()), "ts": pa.array(times, US), "s": pa.array(texts, pa.string()),
             "w": pa.array(wide, pa.decimal128(38, 0))}
        )  # fmt: skip
    return found


def batches(data: st.DataObject, whole: dict[str, pa.Table]) -> Iterator[dict[str, pa.Table]]:
    """The rows by steps of a few seconds, so that none is late."""
    end = max(t["ts"].to_numpy().astype("int64").max() for t in whole.values()) // SECOND
    at = 0
    while at <= end:
        until = at + data.draw(st.integers(1, 9), label="seconds of a step")
        yield {
            name: t.filter(
                pa.array((t["ts"].to_numpy().astype("int64") // SECOND >= at)
                         & (t["ts"].to_numpy().astype("int64") // SECOND < until))
            )
            for name, t in whole.items()
        }  # fmt: skip
        at = until


def told(query: Case, whole: dict[str, pa.Table]) -> tuple[Counter[Any], Counter[Any]]:
    """The answer and the dead letters that DuckDB has."""
    connection = database()
    for name, table in whole.items():
        connection.register(name, table)
    return tuple(Counter(connection.execute(sql).fetchall()) for sql in (query.expected, query.dead))  # type: ignore[return-value]


def counted(found: Sequence[pa.Table]) -> Counter[Any]:
    return Counter(tuple(row.values()) for table in found for row in table.to_pylist())


@drawing(200)
@given(data=st.data())
def test_dead_letters_and_answers_are_those_of_duckdb(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    query = data.draw(st.sampled_from(CASES_ASKED), label="query")
    whole = data.draw(tables(), label="rows")
    expected, dead = told(query, whole)
    path: Path | None = None
    if data.draw(st.booleans(), label="checkpoint"):
        path = tmp_path_factory.mktemp("rejected") / "ckpt"
    engine = made(path, data.draw(st.sampled_from([1, 3]), label="lanes"))
    spread = data.draw(st.sampled_from([None, None, None, "psp_d", "hash_hops"]), label="spread")
    if spread is None:
        engine.add_query("q", query.sql, plan=data.draw(st.sampled_from(PLANS), label="plan"))
    else:
        engine.add_query("q", query.sql, spread=spread, nodes=3)
    answers = []
    for batch in batches(data, whole):
        if spread is None and data.draw(st.booleans(), label="moves"):
            strategy = data.draw(st.sampled_from([s for s in ms.strategies() if s in MOVES]), label="strategy")
            with suppress(MidstreamError):  # Some do not begin while another one is under way.
                engine.migrate("q", plan=data.draw(st.sampled_from(PLANS), label="new plan"), strategy=strategy)
        answers.append(engine.push(batch)["q"])
        if path is not None and data.draw(st.booleans(), label="opened again"):
            engine.close()
            engine = made(path, None)
    for last in range(4):  # What a migration holds back comes once the old rows are gone.
        late = pa.array([(1000 + 100 * last) * SECOND], US)
        end = pa.table({"k": pa.array([None], pa.int64()), "ts": late, "s": pa.array([None], pa.string()),
                        "w": pa.array([None], pa.decimal128(38, 0))})  # fmt: skip
        answers.append(engine.push(dict.fromkeys("ABC", end))["q"])
    assert counted(answers) == expected
    letters = engine.dead_letters.get("q")
    times = Counter[Any]()
    if letters is not None:
        columns = [letters[f"{s}.ts"].to_pylist() for s in "ABC"]
        times = Counter(zip(*columns, strict=True))
        assert all(reason.endswith("cannot be evaluated") for reason in letters["_reason"].to_pylist())
    assert times == dead
    assert engine.manifest.queries["q"].rejected == dead.total()
    engine.close()


MOVES = ("moving_state", "parallel_track", "hybmig", "gms", "gpt", "ghm", "jisc")


def made(path: Path | None, lanes: int | None) -> ms.Engine:
    """An engine with the three streams."""
    engine = ms.Engine(lanes=lanes, checkpoint=path)
    for stream in "ABC":
        engine.create_stream(stream, DDL, timestamp="ts")
    return engine
