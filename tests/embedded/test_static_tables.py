"""Static tables over restarts, kills, saves and commands from outside; what is refused of them."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import midstream as ms
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.reader import Checkpoint
from midstream.cli.main import app
from midstream.embedded.folder_source import table_rows
from midstream.model.events import TableDropped, TableSet
from midstream.pipeline.opened import OpenCheckpoint
from midstream.sql.job_specs import TableSpec
from midstream.storage.sweep import TABLES, sweep
from tests.forked import run

SCHEMA = "k BIGINT, v DOUBLE, ts TIMESTAMP"
SQL = "SELECT A.k, r.w, r._version AS version FROM A LEFT JOIN rates r ON r.k = A.k"
COUNTS = "SELECT r.w, COUNT(*) AS n FROM A JOIN rates r ON r.k = A.k GROUP BY r.w, TUMBLE(ts, INTERVAL 10 SECONDS)"


def rates(*records: tuple[int, int]) -> pa.Table:
    keys, weights = zip(*records, strict=True)
    return pa.table({"k": pa.array(keys, pa.int64()), "w": pa.array(weights, pa.int64())})


def rows(*keys: int, second: int = 0) -> dict[str, pa.Table]:
    times = pa.array([second * 1_000_000] * len(keys), pa.timestamp("us"))
    return {"A": pa.table({"k": list(keys), "v": [float(key) for key in keys], "ts": times})}


def the_engine(place: Path | str, table: pa.Table | None = None, **options: Any) -> ms.Engine:
    engine = ms.Engine(checkpoint=place, **options)
    engine.create_stream("A", SCHEMA, timestamp="ts")
    if table is not None:
        engine.table("rates", table)
    engine.add_query("q", SQL)
    engine.add_query("counts", COUNTS)
    return engine


def answered(found: dict[str, pa.Table]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in found["q"].to_pylist()]


def test_what_a_script_declares_again_is_no_refresh(tmp_path: Path) -> None:
    first, second = rates((1, 10)), rates((1, 20))
    with the_engine(tmp_path / "c", first) as engine:
        assert answered(engine.push(rows(1, 2))) == [(1, 10, 1), (2, None, None)]
        engine.table("rates", second)
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]
    with the_engine(tmp_path / "c", first) as engine:
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]
        engine.table("rates", first)
        assert answered(engine.push(rows(1))) == [(1, 10, 3)]
        engine.table("rates", first)
        assert answered(engine.push(rows(1))) == [(1, 10, 3)]
    with the_engine(tmp_path / "c", rates((1, 30))) as engine:
        assert answered(engine.push(rows(1))) == [(1, 30, 4)]


def test_a_refresh_waits_in_the_checkpoint_and_is_swept_once_nobody_lists_it(tmp_path: Path) -> None:
    with the_engine(tmp_path / "c", rates((1, 10))) as engine:
        engine.push(rows(1))
        engine.table("rates", rates((1, 20)))
    files = tmp_path / "c" / "store" / TABLES
    sweep(tmp_path / "c" / "store", [Checkpoint.open(tmp_path / "c").manifest()])
    assert len(list(files.rglob("*.arrow"))) == 2
    with the_engine(tmp_path / "c") as engine:
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]
        for _ in range(300):
            engine.push(rows(1))
    assert len(list(files.rglob("*.arrow"))) == 1


def test_versions_that_nobody_reads_go_also_those_of_former_starts(tmp_path: Path) -> None:
    for start in range(3):
        with the_engine(tmp_path / "c", rates((1, 0))) as engine:
            for number in range(11):
                engine.table("rates", rates((1, 100 * start + number)))
                engine.push(rows(1))
    with the_engine(tmp_path / "c") as engine:
        for _ in range(20):
            engine.push(rows(1))
    assert len(list((tmp_path / "c" / "store" / TABLES).rglob("*.arrow"))) == 1


def test_what_a_waiting_command_brings_stays_over_starts(tmp_path: Path) -> None:
    """Also where the job goes back to before it, and takes it again."""
    pyarrow.csv.write_csv(rates((1, 20)), tmp_path / "rates.csv")
    with the_engine(tmp_path / "c", rates((1, 10))) as engine:
        engine.push(rows(1))
        before = engine.manifest.step
        OpenCheckpoint.of(tmp_path / "c").savepoint("before")
        sent = CliRunner().invoke(app, ["table", str(tmp_path / "c"), "rates", str(tmp_path / "rates.csv")])
        assert sent.exit_code == 0, sent.output
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]
        engine.table("rates", rates((1, 30)))
        for _ in range(30):
            engine.push(rows(1))
    with the_engine(tmp_path / "c") as engine:
        engine.push(rows(1))
    OpenCheckpoint.of(tmp_path / "c").rewind("before")
    with the_engine(tmp_path / "c") as engine:
        assert engine.manifest.step == before
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]


def test_an_engine_is_saved_with_its_tables(tmp_path: Path) -> None:
    engine = ms.Engine(lanes=2)
    engine.create_stream("A", SCHEMA, timestamp="ts")
    engine.table("rates", rates((1, 10)))
    engine.add_query("q", SQL)
    engine.push(rows(1))
    engine.table("rates", rates((1, 20)))
    engine.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    assert answered(again.push(rows(1))) == answered(engine.push(rows(1))) == [(1, 20, 2)]


def test_the_command_line_refreshes_a_table(tmp_path: Path) -> None:
    with the_engine(tmp_path / "c", rates((1, 10))) as engine:
        engine.push(rows(1))
        pyarrow.csv.write_csv(rates((1, 20), (2, 21)), tmp_path / "rates.csv")
        sent = CliRunner().invoke(app, ["table", str(tmp_path / "c"), "rates", str(tmp_path / "rates.csv")])
        assert sent.exit_code == 0, sent.output
        assert answered(engine.push(rows(1, 2))) == [(1, 20, 2), (2, 21, 2)]
        assert TableSet(1, "rates", 2, 2) in engine.events
        shown = CliRunner().invoke(app, ["status", str(tmp_path / "c")])
        assert "static tables" in shown.output and "rates" in shown.output
        assert "left join with table rates on r.k = A.k" in engine.explain("q")
        assert engine.report().tables["rates"].version == 2
        declared = ["--schema", "k BIGINT, w BIGINT"]
        with_names = [str(tmp_path / "c"), "rates", str(tmp_path / "rates.csv"), *declared]
        assert CliRunner().invoke(app, ["table", *with_names]).exit_code == 0
        again = CliRunner().invoke(app, ["table", str(tmp_path / "c"), "rates", str(tmp_path / "rates.csv")])
        assert again.exit_code == 0, again.output
        assert answered(engine.push(rows(1))) == [(1, 20, 2)]
        wrong = tmp_path / "wrong.csv"
        wrong.write_text("k,other\n1,2\n")
        refused = CliRunner().invoke(app, ["table", str(tmp_path / "c"), "rates", str(wrong)])
        assert refused.exit_code == 1 and isinstance(refused.exception, ms.MidstreamError)
        assert "new columns" in str(refused.exception)


STEPS = 6
"""Before each the table has another version."""


def main(root: Path | str) -> None:
    """An engine in a process of its own, which goes on where the checkpoint stands."""
    with the_engine(f"{root}/c", rates((1, 0)), take_over=True) as engine:
        for number in range(engine.manifest.step + 1, STEPS):
            if number and "set_table" not in {command.kind for command in engine.manifest.pending}:
                engine.table("rates", rates((1, number)))
            engine.push(rows(1, second=number * 10))


@pytest.mark.timeout(300)
def test_kills_change_no_answer(tmp_path: Path) -> None:
    for step, point in enumerate(("after_chunks", "before_manifest", "after_manifest", "before_sink"), start=1):
        done = run("tests.embedded.test_static_tables", tmp_path, MIDSTREAM_KILL_AT=f"{point}:{step}")
        assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    main(tmp_path)
    main(tmp_path / "undisturbed")
    for name in ("q", "counts"):
        found, expected = (results(place / "c", name) for place in (tmp_path, tmp_path / "undisturbed"))
        assert found == expected and found
    newest = ManifestLog(tmp_path / "c" / "manifests").latest()
    assert newest is not None and newest.tables["rates"].version == STEPS


def results(checkpoint: Path, query: str) -> list[tuple[Any, ...]]:
    files = sorted((checkpoint / "results" / query).rglob("*.parquet"))
    return [tuple(row.values()) for file in files for row in pa.parquet.read_table(file).to_pylist()]


REFUSED = {
    "SELECT rates.k FROM rates": "over static tables alone",
    "SELECT A.k FROM A RIGHT JOIN rates r ON r.k = A.k": "RIGHT JOIN of a static table",
    "SELECT A.k FROM rates r LEFT JOIN A ON r.k = A.k": "outer join of a table with a stream",
    "SELECT A.k FROM A, rates [RANGE 5 SECONDS] r WHERE r.k = A.k": "a static table or a list cannot have a window",
    "SELECT A.k FROM A JOIN rates FOR SYSTEM_TIME AS OF A.ts AS r ON r.k = A.k": "0 columns of a date or time",
    "SELECT A.k FROM A ASOF JOIN rates r ON r.k = A.k": "0 conditions of time",
    "SELECT A.k FROM A ASOF JOIN rates r ON r.k = A.k AND r.w > A.k": "on 'r.w > A.k'",
    "SELECT A.k FROM A ASOF JOIN rates r ON r.k = A.k AND r.name <= 'x'": "must compare a time",
    "SELECT A.k FROM A ASOF JOIN rates r ON r.k = A.k AND r.w <= A.k WINDOW 5 SECONDS": "over static tables alone",
    "SELECT A.k FROM A JOIN rates r ON CAST(r.name AS BIGINT) = A.k": "cannot be evaluated for every row",
    "SELECT A.k, r.w FROM A JOIN rates r ON r.k = A.k WHERE CAST(r.name AS BIGINT) > 1": "cannot be evaluated",
    "SELECT A.k, r.w FROM A SEMI JOIN rates r ON r.k = A.k": "unknown source 'r'",
    "SELECT A.k, r.nothing FROM A JOIN rates r ON r.k = A.k": "unknown column 'r.nothing'",
    "SELECT k FROM A JOIN rates r ON r.k = A.k": "ambiguous",
    "SELECT A.k FROM A [ROWS 3] JOIN A [ROWS 3] b ON A.k = b.k JOIN rates r ON r.k = b.k": "a ROWS window",
    "SELECT A.k FROM A JOIN rates r USING (v)": "USING names column 'v'",
    "SELECT A.k FROM A [RANGE 5 SECONDS] LEFT JOIN A [RANGE 5 SECONDS] b ON A.k = b.k "
    "JOIN rates r ON r.k = b.k": "may fill",
    "SELECT A.k FROM A [RANGE 5 SECONDS], A [RANGE 5 SECONDS] b "
    "LEFT JOIN rates r ON r.k = A.k AND r.w = b.k WHERE A.k = b.k": "several streams by an outer or as-of join",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items())
def test_what_is_not_carried_is_refused_with_a_remedy(text: str, message: str) -> None:
    engine = ms.Engine()
    engine.create_stream("A", SCHEMA, timestamp="ts")
    engine.table("rates", [{"k": 1, "w": 2, "name": "x"}])
    with pytest.raises(ms.MidstreamError, match=message.replace("(", r"\(").replace(")", r"\)")) as refused:
        engine.add_query("q", text)
    assert refused.value.remedy


def test_rows_that_are_no_table_are_refused() -> None:
    engine = ms.Engine()
    engine.create_stream("A", SCHEMA, timestamp="ts")
    for name, given, message in (
        ("A", rates((1, 2)), "there is already a stream 'A'"),
        ("rates", [], "has no columns"),
        ("rates", pa.table({"_version": [1]}), "reserved"),
        ("rates", 7, "a int cannot be the rows of table 'rates'"),
    ):
        with pytest.raises(ms.MidstreamError, match=message) as refused:
            engine.table(name, given)
        assert refused.value.remedy
    engine.table("rates", rates((1, 2)))
    with pytest.raises(ms.MidstreamError, match="'rates'"):
        engine.create_stream("rates", SCHEMA, timestamp="ts")
    engine.add_query("q", SQL)
    with pytest.raises(ms.QueryError, match="has new columns"):
        engine.table("rates", pa.table({"k": [1]}))
    with pytest.raises(ms.InputError, match="do not fit its columns"):
        engine.table("rates", pa.table({"k": ["x"], "w": [1]}))
    engine.table("rates", [])
    assert answered(engine.push(rows(1))) == [(1, None, None)]


def test_what_cannot_be_evaluated_of_a_match_is_a_dead_letter() -> None:
    engine = ms.Engine()
    engine.create_stream("A", SCHEMA, timestamp="ts")
    engine.table("rates", [{"k": 1, "name": "7"}, {"k": 1, "name": "x"}])
    engine.add_query("q", "SELECT A.k, CAST(r.name AS BIGINT) AS n FROM A JOIN rates r ON r.k = A.k")
    assert engine.push(rows(1))["q"].to_pylist() == [{"k": 1, "n": 7}]
    (letter,) = engine.dead_letters["q"].to_pylist()
    assert letter["r.name"] == "x" and "cannot be evaluated" in letter["_reason"]


if __name__ == "__main__":
    import sys

    main(sys.argv[1])
    os._exit(0)


def test_a_table_is_dropped_once_no_query_reads_it(tmp_path: Path) -> None:
    with the_engine(tmp_path / "c", rates((1, 10))) as engine:
        engine.push(rows(1))
        with pytest.raises(ms.MidstreamError, match="queries read it: q, counts") as caught:
            engine.drop_table("rates")
        assert caught.value.remedy == "drop them first"
        engine.drop_query("q")
        engine.drop_query("counts")
        engine.push(rows(1))
        sent = CliRunner().invoke(app, ["drop", str(tmp_path / "c"), "rates", "--table"])
        assert sent.exit_code == 0, sent.output
        engine.push(rows(1))
        assert TableDropped(2, "rates") in engine.events and not engine.manifest.tables
        with pytest.raises(ms.MidstreamError, match="rates"):
            engine.add_query("q", SQL)
    with the_engine(tmp_path / "c", rates((1, 10))) as engine:  # Its script declares the table still.
        assert answered(engine.push(rows(1))) == [(1, 10, 1)]
    both = CliRunner().invoke(app, ["drop", str(tmp_path / "c"), "rates", "--table", "--stream"])
    assert both.exit_code == 2


@pytest.mark.parametrize(("tags", "said"), [('["a", "b"]', ""), ('{"a": 1}', "cannot read")])
def test_nested_columns_of_json_files(tmp_path: Path, tags: str, said: str) -> None:
    (tmp_path / "rates.json").write_text(f'{{"k": 1, "tags": {tags}}}\n{{"k": 2}}\n')
    spec = TableSpec("json", str(tmp_path / "rates.json"), "k BIGINT, tags VARCHAR[]")
    if said:
        with pytest.raises(ms.InputError, match=f"table 'rates'.*{said}"):
            table_rows("rates", spec)
    else:
        assert table_rows("rates", spec).to_pylist() == [{"k": 1, "tags": ["a", "b"]}, {"k": 2, "tags": None}]
