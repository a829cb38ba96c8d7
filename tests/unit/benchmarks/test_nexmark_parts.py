"""The NEXMark benchmark: the peers answer alike on small inputs, who runs when, the day, the page."""

from __future__ import annotations

import io
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.measurement import Answer, Batch, Measurement
from benchmarks.nexmark import command, day
from benchmarks.nexmark.page import page
from benchmarks.nexmark.questions import QUESTIONS
from benchmarks.nexmark.rows import Batches
from benchmarks.nexmark.spark_texts import AS_WRITTEN, SPARK
from benchmarks.optimizer.load import Load
from benchmarks.optimizer.record import Report
from benchmarks.optimizer.verdicts import wrong
from benchmarks.peers import Task, duckdb_offline, midstream_embedded
from benchmarks.report import Result

TINY = Batches(events=3_000, per_second=100, count=2)


@pytest.mark.parametrize("name", QUESTIONS)
def test_midstream_answers_as_duckdb(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for peer in (midstream_embedded, duckdb_offline):
        monkeypatch.setattr(peer, "keep_to_one_core", lambda: None)
    task = Task(replace(QUESTIONS[name], input=TINY), tmp_path, tmp_path)
    ours, theirs = midstream_embedded.run(task), duckdb_offline.one_thread(task)
    assert ours.answer == theirs.answer and ours.answer.rows > 0
    assert len(ours.batches) == TINY.count


def test_every_query_has_a_text_for_spark_or_one_that_it_refuses() -> None:
    assert SPARK.keys() | AS_WRITTEN.keys() == QUESTIONS.keys()


def test_the_last_batch_closes_every_window() -> None:
    *steps, closing = TINY.steps(TINY.stream_names)
    for stream in TINY.stream_names:
        (end,) = closing[stream]["ts"].to_pylist()
        assert all(
            before["ts"][-1].as_py() <= after["ts"][0].as_py() for before, after in pairwise(s[stream] for s in steps)
        )
        assert (end - steps[-1][stream]["ts"][-1].as_py()).total_seconds() > 60


def test_runs_take_turns_and_every_second_round_goes_the_other_way() -> None:
    turns = list(command._turns(["q3", "q9"], 2))
    assert [turn[2] for turn in turns if turn[1] == "q9"] == [
        "embedded", "duckdb_1", "midstream_spark", "midstream_spark", "duckdb_1", "embedded",
    ]  # fmt: skip
    assert [turn[2] for turn in turns[:4]] == ["embedded", "duckdb_1", "midstream_spark", "spark_default"]
    assert [turn[0] for turn in turns] == [1] * 7 + [2] * 7


def measurement(peer: str, name: str, seconds: float, refused: str = "", rows: int = 5) -> Measurement:
    notes = {"refused": refused} if refused else {}
    return Measurement(peer, name, (Batch(100, seconds), Batch(100, seconds)), Answer(rows, "1"), notes)


def test_the_page_has_rates_refusals_and_answers_that_differ() -> None:
    joined = Result("q3", [measurement("midstream_spark", "q3", 0.1), measurement("spark_default", "q3", 0.4)])
    refused = Result("q9", [measurement("midstream_spark", "q9", 0.1, "[NO_WINDOW] No (such) window. At all")])
    found = page([joined, refused], None)
    assert "| 1,000 | 250 | **4.0** |" in found and "| 1,000 | refused |" in found
    assert "| q9 | `NO_WINDOW` | No | nothing |" in found and "WRONG" not in found
    others = Result("q3", [measurement("midstream_spark", "q3", 0.1), measurement("spark_default", "q3", 0.4, rows=6)])
    assert "## WRONG" in page([others], None)


def test_over_the_day_rates_and_skew_drift() -> None:
    rows = day.DAY.rows(Load(window=4.0, tick=4.0, review=4.0, rate=500))
    again = day.DAY.rows(Load(window=4.0, tick=4.0, review=4.0, rate=500))
    assert all(table.equals(again.tables[stream]) for stream, table in rows.tables.items())
    quarter = {stream: times[-1] // 4 for stream, times in rows.times.items()}
    early, late = (
        {stream: int(((times // quarter[stream]) == part).sum()) for stream, times in rows.times.items()}
        for part in (0, 3)
    )
    assert early["person"] > 10 * late["person"] and late["auction"] > 10 * early["auction"]
    bids = rows.tables["bid"]["auction"].to_pylist()
    hot = [sum(key % 100 == 0 for key in part) / len(part) for part in (bids[:2000], bids[-2000:])]
    assert hot[0] < 0.6 and 0.8 < hot[1] < 0.95


def test_all_answer_alike_over_the_day_and_the_page_says_what_they_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(day, "QUICK", Load(window=4.0, tick=4.0, review=4.0, rate=60))
    (tmp_path / "results").mkdir()
    assert command.main(["--quick", "--only", "day", "--out", str(tmp_path)]) == 0
    report = Report.load_from(tmp_path / "results" / "nexmark", "embedded")
    assert report is not None and report.scenarios == list(day.SCENARIOS)
    for name in report.scenarios:
        assert list(wrong(report.of(name))) == [] and all(record.results > 0 for record in report.of(name))
    found = (tmp_path / "NEXMARK.md").read_text()
    assert found.count("(best kept)") == len(day.SCENARIOS) and "| adaptive |" in found


def test_the_optimizer_follows_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    # With few rows the whole work of the plans differs by about the margin, a twentieth: no move is worth it.
    monkeypatch.setattr(day, "FULL", replace(day.FULL, rate=5000))
    monkeypatch.setattr(day, "SCENARIOS", {"q9": day.SCENARIOS["q9"]})
    report = day.contest(Console(file=io.StringIO()), quick=False)
    adaptive = next(record for record in report.of("q9") if record.contestant == day.POLICY)
    kept = [record for record in report.of("q9") if record.kind == "fixed"]
    assert adaptive.switches and adaptive.comparisons < min(record.comparisons for record in kept)
    assert sum(adaptive.work) < min(sum(record.work) for record in kept)
