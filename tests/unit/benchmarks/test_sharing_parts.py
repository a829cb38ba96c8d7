"""The pure parts of the sharing benchmark: workloads, answers, verdicts, page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.sharing.embedded import race
from benchmarks.sharing.pace import MODES, Pace
from benchmarks.sharing.page import page
from benchmarks.sharing.plan import full, quick
from benchmarks.sharing.record import Newcomer, OnSpark, Record, Report, Scaling
from benchmarks.sharing.scaling import equal_windows, wanted_by
from benchmarks.sharing.verdicts import verdicts, wrong
from benchmarks.sharing.workload import DISTRIBUTIONS, FILTERS, LEVELS, LONGEST, Feed, Workload


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("count", [1, 12, 36, 100, 1_000])
def test_windows_are_all_different_and_end_with_the_longest(distribution: str, count: int) -> None:
    windows = Workload(count, distribution).windows()
    assert len(set(windows)) == count
    assert list(windows) == sorted(windows)
    assert windows[-1] == LONGEST


def test_a_feed_goes_on_where_it_stopped() -> None:
    feed = Feed(rate=100)
    tables = [feed.next(2)["A"], feed.next(1)["A"]]
    assert [table.num_rows for table in tables] == [200, 100]
    times = pa.concat_tables(tables)["ts"].cast(pa.int64()).to_numpy()
    assert (np.diff(times) >= 0).all() and times[200] >= 2_000_000 > times[199]
    assert pa.concat_tables(tables)["id"].to_pylist() == list(range(300))
    assert feed.given == 300


@pytest.mark.parametrize("kind", ["nested", "apart"])
def test_half_of_all_rows_pass_a_filter_on_average(kind: str) -> None:
    values = np.linspace(0, 1, 10_001)
    shares, passing = [], []
    for number in range(LEVELS):
        text = FILTERS[kind](number)
        assert text is not None
        bounds = [float(word) for word in text.replace("A.v", "").split() if word[0].isdigit()]
        mask = values > bounds[0] if kind == "nested" else (values >= bounds[0]) & (values <= bounds[1])
        shares.append(mask.mean())
        passing.append(mask)
    assert np.mean(shares) == pytest.approx(0.5, abs=0.01)
    contained = [(a <= b).all() or (b <= a).all() for i, a in enumerate(passing) for b in passing[:i]]
    assert all(contained) if kind == "nested" else not any(contained)


def test_many_windows_can_want_what_few_do() -> None:
    ages = np.sort(np.random.default_rng(1).integers(0, LONGEST, 5_000))
    windows = equal_windows(500, 20_000, ages)
    assert len(set(windows)) == 500
    assert wanted_by(windows, ages) == pytest.approx(20_000, rel=0.01)


def test_all_modes_answer_alike_and_a_slow_one_does_fewer_steps() -> None:
    pace = Pace(rate=10, history=(10, 10), settle=1, measured=3)
    records = race(Workload(3, "small_large", "apart"), MODES, pace, {"off": 2})
    assert [record.mode for record in records] == list(MODES)
    assert [record.wrong for record in records] == [""] * len(MODES)
    assert {record.mode: len(record.seconds) for record in records if record.mode in ("off", "auto")} == {
        "off": 2,
        "auto": 3,
    }
    assert records[0].remark == "2 of 3 steps"


def test_an_answer_that_differs_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.sharing import embedded

    original = embedded.timed_push

    def lossy(engine: object, tables: object) -> tuple[float, dict[str, pa.Table]]:
        seconds, results = original(engine, tables)  # type: ignore[arg-type]
        if engine.manifest.sharing == "mem_opt":  # type: ignore[attr-defined]
            results = {name: table.filter(pc.greater(table["a"], 30)) for name, table in results.items()}
        return seconds, results

    monkeypatch.setattr(embedded, "timed_push", lossy)
    records = race(Workload(2), MODES, Pace(rate=20, history=(10,), settle=0, measured=1), {})
    assert [record.mode for record in records if record.wrong] == ["mem_opt"]


def record(mode: str, seconds: float, queries: int = 36, state: int = 100) -> Record:
    return Record(queries, "uniform", "none", mode, 80, (seconds,) * 3, 1_000, state, 2_000, 3)


REPORT = Report(
    records=(record("mem_opt", 0.01, queries=1), record("off", 0.06), record("pull_up", 0.02), record("mem_opt", 0.01),
             record("cpu_opt", 0.01)),
    scalings=(Scaling("auto", 10, 1_000, 200, (9, 9), (0.1,), (0.5,)),
              Scaling("auto", 10, 1_000, 2_000, (99, 99), (0.1,), (0.15,), required=True)),
    newcomers=(Newcomer("spark", "auto", 1_000, "a new filter", 0.1, 1.2, (1.0, 1.1, 1.2)),),
    spark=(OnSpark("one job of midstream", 1, 5, 1_000, (0.5,), 10, "m"),
           OnSpark("separate Spark queries", 1, 5, 1_000, (6.0,), 10, "m", stopped="does not keep up")),
)  # fmt: skip


def test_verdicts_are_met_by_what_meets_them() -> None:
    assert [v.met for v in verdicts(REPORT)] == [True] * 5
    assert not wrong(REPORT)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"records": (*REPORT.records[:1], record("off", 0.04), *REPORT.records[2:])}, "off / cpu_opt"),
        ({"records": (*REPORT.records[:2], record("pull_up", 0.01), *REPORT.records[3:])}, "pull_up / cpu_opt"),
        ({"records": (*REPORT.records[:3], record("mem_opt", 0.01, state=101), REPORT.records[4])}, "state rows"),
        ({"scalings": (replace(REPORT.scalings[1], many_seconds=(0.21,)),)}, "1,000 queries / 10"),
        ({"newcomers": (replace(REPORT.newcomers[0], step=2.1),)}, "a new filter"),
    ],
)
def test_verdicts_are_missed_by_what_misses_them(change: dict[str, object], said: str) -> None:
    missed = [v.what for v in verdicts(replace(REPORT, **change)) if not v.met]  # type: ignore[arg-type]
    assert len(missed) == 1 and said in missed[0]


def test_a_refusal_is_wrong_but_for_push_down() -> None:
    refused = Record(36, "uniform", "none", "push_down", 80, refused="no filters")
    assert not wrong(Report(records=(refused,)))
    assert wrong(Report(records=(replace(refused, mode="mem_opt"),)))


def test_a_report_survives_the_disk_and_makes_a_page_and_a_picture(tmp_path: Path) -> None:
    from benchmarks.sharing.picture import draw

    REPORT.save(tmp_path / "sharing.json")
    loaded = Report.load(tmp_path / "sharing.json")
    assert loaded == REPORT
    text = page(REPORT)
    assert text.count("| met |") == 5 and "MISSED" not in text and "1.50" in text
    assert "MISSED" in page(replace(REPORT, newcomers=(replace(REPORT.newcomers[0], step=9),)))
    assert "mean nothing" in page(replace(REPORT, quick=True))
    draw(REPORT, tmp_path / "sharing.png")
    assert (tmp_path / "sharing.png").stat().st_size > 10_000 and (tmp_path / "sharing.svg").exists()


def test_the_plans_have_every_part() -> None:
    plan = full()
    asked = {(w.queries, w.distribution) for w in plan.workloads if w.filters == "none"}
    assert asked == {(1, "uniform")} | {(count, d) for count in (12, 36, 100, 1_000) for d in DISTRIBUTIONS}
    filtered = {w.queries for w in plan.workloads if w.filters != "none"}
    assert filtered == {12, 36, 100, 1_000}
    for workload in (*plan.workloads, *quick().workloads):
        assert sum(plan.pace_of(workload).ticks()[: -plan.pace_of(workload).measured]) * 1e6 >= LONGEST
