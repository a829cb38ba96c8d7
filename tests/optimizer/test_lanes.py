"""The number of lanes of a running engine: who is asked, what is said, and that answers and replays stay the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.embedded.job_run import FileJob
from midstream.model.codec import decode, encode
from midstream.model.events import CommandRefused, LanesProposalClosed, LanesRescaled, LanesReviewed
from midstream.model.manifest import Manifest
from midstream.spark.feed import Feed
from midstream.sql.job_file import parse_job
from tests.optimizer.drifting import COLUMNS, engine, rows

KEYS = {"A": 40, "B": 40, "C": 40}
LATE = {"took": 1.6, "interval": 1.0}


def job(mode: str = "auto", **options: object) -> ms.Engine:
    made = engine(threads=4, **options)
    made.optimize(mode="off", lanes=mode, review="2 seconds")
    return made


def run(made: ms.Engine, steps: Sequence[int], **timing: float) -> list[pa.Table]:
    return [made.push(rows(step, KEYS, rate=20), **timing)["q"] for step in steps]


def reviewed(made: ms.Engine) -> list[LanesReviewed]:
    return [event for event in made.events if isinstance(event, LanesReviewed)]


def test_late_steps_get_more_lanes_and_the_answers_are_duckdbs() -> None:
    made = job()
    run(made, [0], **LATE)
    answers = run(made, range(1, 14), **LATE)
    switched = [event for event in reviewed(made) if event.decision == "switch"]
    assert [(event.lanes, event.chosen) for event in switched] == [(1, 2)] and made.manifest.lanes == 2
    assert [event.old for event in made.events if isinstance(event, LanesRescaled)] == [1]
    assert "a step takes 1.6 times the trigger's interval" in switched[0].reason
    assert switched[0].figures["took"] == 1.6 and switched[0].figures["workers"] == 4
    given = {name: pa.concat_tables(rows(step, KEYS, rate=20)[name] for step in range(14)) for name in KEYS}
    database = duckdb.connect()
    for name, table in given.items():
        database.register(name, table)
    expected = database.sql(
        "SELECT count(*), sum(A.k) FROM A, B, C WHERE A.k = B.k AND B.k = C.k"
        " AND greatest(A.ts, B.ts, C.ts) - least(A.ts, B.ts, C.ts) <= INTERVAL 10 SECONDS"
        " AND greatest(A.ts, B.ts, C.ts) >= TIMESTAMP '1970-01-01 00:00:01'"
    ).fetchall()
    found = pa.concat_tables(answers)["k"].to_pylist()
    assert (len(found), sum(found)) == expected[0]


def test_without_a_host_that_measures_nothing_is_reviewed() -> None:
    made = job()
    run(made, range(8))
    assert not reviewed(made) and made.manifest.lane_optimization.reviewed is None


def test_by_default_more_lanes_are_suggested_and_approved_by_number() -> None:
    made = engine(threads=4)
    made.optimize(mode="suggest", review="2 seconds")
    run(made, range(10), **LATE)
    suggested = reviewed(made)[-1]
    assert suggested.decision == "suggest" and made.manifest.lanes == 1
    assert suggested.answer == "midstream approve CKPT --lanes 2, or engine.approve(lanes=2)"
    assert made.report().lane_review.waits and made.plans("q").lanes == made.report().lane_review
    with pytest.raises(ms.QueryError, match="the proposal is 2 lanes, not 8"):
        made.approve(lanes=8)
    with pytest.raises(ms.QueryError, match="the command must name exactly one proposal"):
        made.approve("q", lanes=2)
    made.approve(lanes=2)
    run(made, [10], **LATE)
    assert made.manifest.lanes == 2
    assert [e.state for e in made.events if isinstance(e, LanesProposalClosed)] == ["approved"]


def test_what_was_rejected_is_not_proposed_again() -> None:
    made = job("ask")
    run(made, range(10), **LATE)
    assert "engine.reject(lanes=2)" in reviewed(made)[-1].answer
    made.reject(lanes=2)
    with pytest.raises(ms.QueryError, match="the proposal of 2 lanes was rejected"):
        made.approve(lanes=2)
    run(made, range(10, 20), **LATE)
    assert reviewed(made)[-1].decision == "stay" and "were rejected in step 10" in reviewed(made)[-1].reason
    run(made, range(20, 44), took=8.0, interval=1.0)
    assert reviewed(made)[-1].decision == "ask", "much more is to be gained by now"


def test_a_proposal_is_withdrawn_once_steps_are_timely() -> None:
    made = job("ask")
    run(made, range(10), **LATE)
    run(made, range(10, 30), took=0.6, interval=1.0)
    assert [e.state for e in made.events if isinstance(e, LanesProposalClosed)] == ["withdrawn"]
    assert not made.report().lane_review.waits


def test_a_user_who_sets_lanes_takes_the_proposal_away() -> None:
    made = job("ask")
    run(made, range(10), **LATE)
    made.rescale(3)
    with pytest.raises(ms.QueryError, match="the job has 3 lanes instead of 1"):
        made.approve(lanes=2)
    run(made, range(10, 14), took=0.6, interval=1.0)
    assert made.manifest.lanes == 3 and not [e for e in made.events if isinstance(e, CommandRefused)]


def test_where_lanes_cannot_help_it_is_said() -> None:
    made = ms.Engine(threads=4)
    for name in "AB":
        made.create_stream(name, COLUMNS, timestamp="ts")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k < B.k WINDOW 2 SECONDS")
    made.optimize(lanes="auto", review="2 seconds", mode="auto")
    for step in range(10):
        made.push(rows(step, {"A": 9, "B": 9}, rate=3), **LATE)
    assert made.manifest.lanes == 1
    assert {event.reason for event in reviewed(made)} == {
        "no key joins all streams of a query, so one lane has all its rows"
    }


def test_lanes_stay_while_a_query_is_on_its_way() -> None:
    made = job()
    run(made, range(4), **LATE)
    made.migrate("q", "(A (B C))", "parallel_track")
    run(made, range(4, 10), **LATE)
    assert made.report().migrations and made.manifest.lanes == 1
    run(made, range(10, 24), **LATE)
    assert not made.report().migrations and made.manifest.lanes == 2


def test_a_step_that_is_done_again_decides_the_same_whatever_is_measured_then(tmp_path: Path) -> None:
    """The figure counts only once a manifest has it: what a host measures amid the step changes no decision of it."""
    made, step = job(), 0
    while made.manifest.lanes == 1:
        made.save(tmp_path / "saved")
        run(made, [step], **LATE)
        step += 1
    expected = reviewed(made)[-1]
    assert expected.decision == "switch"
    for timing in ({"took": 0.01, "interval": 1.0}, {"interval": 1.0}, {}):
        again = ms.Engine.load(tmp_path / "saved")
        run(again, [step - 1], **timing)
        assert reviewed(again)[-1] == expected and again.manifest.lanes == 2
        assert decode(Manifest, encode(again.manifest)) == again.manifest


def test_the_command_line_shows_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "ckpt")
    with job("ask", checkpoint=path) as made:
        run(made, range(10), **LATE)
        assert main(["status", path]) == 0 and main(["plans", path, "q"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert "2 lanes proposed, saves 50% of a step" in shown and "CKPT --lanes 2" in shown
        assert "1 lane, last review: ask: a step takes 1.6 times the trigger's interval" in shown
        assert main(["approve", path]) == main(["approve", path, "q", "--lanes", "2"]) == 2
        assert main(["approve", path, "--lanes", "2"]) == 0
        run(made, [10], **LATE)
        assert made.manifest.lanes == 2


def test_a_job_of_files_is_timed_against_its_interval(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(rows(0, {"A": 5})["A"], tmp_path / "in" / "0.parquet")
    text = f"""
        checkpoint = "{tmp_path}/ckpt"
        [streams.A]
        format = "parquet"
        path = "{tmp_path}/in"
        timestamp = "ts"
        [queries.q]
        sql = "SELECT x.k FROM A x, A y WHERE x.k = y.k WINDOW 5 SECONDS"
        sink = {{ format = "parquet", path = "{tmp_path}/out" }}
        [optimizer]
        mode = "off"
        lanes = "ask"
    """
    with FileJob(parse_job(text), threads=3) as made:

        def fed(step: int) -> bool:
            pq.write_table(rows(step, {"A": 5})["A"], tmp_path / "in" / f"{step}.parquet")
            return step == 4

        steps = iter(range(1, 9))
        made.run(0.001, lambda: fed(next(steps)), lambda patience: None)
        load = made.engine.manifest.lane_optimization.load
    assert (load.workers, load.interval) == (3, 0.001) and load.took and all(took > 0 for took in load.took)


def test_the_interval_of_spark_is_its_triggers() -> None:
    found = [
        Feed(None, (), None, trigger).interval  # type: ignore[arg-type]
        for trigger in ({"processingTime": "2 seconds"}, {"processingTime": "0 seconds"}, {"availableNow": True}, {})
    ]
    assert found == [2.0, None, None, None]


def test_bad_settings_are_refused() -> None:
    made = engine()
    with pytest.raises(ms.QueryError, match="unknown mode 'always' for the number of lanes"):
        made.optimize(lanes="always", mode="auto")
    with pytest.raises(ms.QueryError, match="the mode for the number of lanes applies to the whole job"):
        made.optimize("q", lanes="auto", mode="auto")
    with pytest.raises(ms.QueryError, match="the optimizer proposes no other number of lanes"):
        made.approve(lanes=2)
