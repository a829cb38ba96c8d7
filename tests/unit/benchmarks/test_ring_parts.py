"""The pure parts of the benchmark of spreads: contestants, answers, verdicts, page, and what lies on disk."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import midstream as ms
from benchmarks.measurement import Answer, Batch, Measurement
from benchmarks.ring import embedded, rivals
from benchmarks.ring.balance import CONDITIONS
from benchmarks.ring.contestants import (
    NO_SPREAD,
    OFFLINE,
    ON_SPARK,
    OTHERS,
    TOGETHER,
    Contestant,
    on_embedded,
    on_spark,
)  # fmt: skip
from benchmarks.ring.load import FULL, QUICK
from benchmarks.ring.page import page
from benchmarks.ring.record import Burst, Even, HopCost, Pause, Record, Report
from benchmarks.ring.relocation import CHANGES, SCHEMES, WAYS, gaps
from benchmarks.ring.scenarios import ALONE, FORMER, PLAIN, SCENARIOS
from benchmarks.ring.verdicts import verdicts, wrong
from midstream.model.errors import MidstreamError
from midstream.ring.spreading import spreadings

NAMES = ("two_keys", "band_4", "great_circle")


def record(
    contestant: Contestant, scenario: str = "two_keys", seconds: float = 1.0, results: int = 7, stages: int = 1
) -> Record:
    batches = (Batch(100, seconds),) * 4
    measurement = Measurement(contestant.name, scenario, batches, Answer(results, str(results)))
    return Record(contestant, measurement, (5, 6), (3, 4), (4, 7), (9,), (stages,) * 4)


PAUSES = tuple(Pause(scheme, way, 0.1, 1.19, 1.3, 0.1) for scheme in SCHEMES for way in CHANGES)


def report(host: str, *records: Record) -> Report:
    return Report(host, FULL, records, pauses=PAUSES if host == "embedded" else ())


def missed(of: Report) -> list[str]:
    return [one.what for one in verdicts(of) if not one.met]


@pytest.mark.parametrize("name", NAMES)
def test_every_embedded_contestant_has_duckdb_s_answer(name: str, tmp_path: Path) -> None:
    asked = SCENARIOS[name]
    few = replace(asked, scenario=replace(asked.scenario, rows=40, keys=20), embedded_rows=40)
    found, refused = [], set()
    for number, contestant in enumerate(on_embedded(few, QUICK)):
        (folder := tmp_path / str(number)).mkdir()
        try:
            if contestant.kind == "rival":
                found.append(rivals.run(few, contestant, QUICK, folder, "embedded"))
            else:
                found.append(embedded.run(few, contestant, QUICK, folder))
        except MidstreamError:
            refused.add(contestant.name)
    assert refused == {"lanes"} and len(found) > len(spreadings())
    assert OFFLINE in [one.contestant for one in found]
    assert len({one.measurement.answer for one in found}) == 1
    assert not [line for line in wrong(Report("embedded", QUICK, tuple(found))) if "nobody" not in line]
    assert not missed(Report("embedded", QUICK, tuple(found)))


def test_rounds_on_spark_are_in_turns() -> None:
    asked = SCENARIOS["two_keys"]
    order = list(on_spark(asked, FULL))
    judged = Contestant("hash_hops", nodes=TOGETHER)
    three = [NO_SPREAD, judged, OTHERS[FORMER]]
    in_turns = [one for number in range(asked.rounds) for one in (three[::-1] if number % 2 else three)]
    assert order[:3] == three and order[3 - len(in_turns) :] == in_turns[3:]
    assert {one.name for one in order if one.kind == "spread"} == spreadings().keys()


def test_a_query_for_each_join_is_judged_beside_one_query() -> None:
    one, each = Contestant("psp_d", nodes=TOGETHER), Contestant("psp_d", "joins", TOGETHER)
    assert list(on_spark(SCENARIOS["great_circle_3"], QUICK))[:3] == [NO_SPREAD, one, each]
    assert each in on_embedded(SCENARIOS["great_circle_3"], QUICK)
    records = [
        record(which, "great_circle_3", each_batch) for which, each_batch in ((NO_SPREAD, 1.8), (one, 1.2), (each, 1.0))
    ]
    assert missed(report("spark", *records)) == [
        "spark, great_circle_3: psp_d on 2 nodes / no spread, steady rows a second"
    ]


@pytest.mark.parametrize("name", SCENARIOS)
def test_what_is_judged_on_spark_runs_over_nodes(name: str) -> None:
    judged = list(on_spark(SCENARIOS[name], QUICK))[1]
    assert judged.kind == "spread" and judged.nodes == TOGETHER and judged.name not in ("lanes", ALONE)


def test_another_answer_a_failure_and_nothing_at_all_are_wrong() -> None:
    one, other = record(NO_SPREAD), record(Contestant("psp", nodes=2), results=8)
    assert not list(wrong(report("spark", one)))
    assert "another answer" in next(wrong(report("spark", one, other)))
    failed = Record.nothing(Contestant("psp"), "two_keys", failed="KeyError: 3")
    assert "KeyError: 3" in next(wrong(report("spark", one, failed)))
    assert "nobody" in next(wrong(report("spark", record(NO_SPREAD, results=0))))


def test_copies_are_seen() -> None:
    alone, spread = record(Contestant(ALONE)), record(Contestant("psp_d", nodes=2))
    assert not missed(report("embedded", alone, spread))
    for more in (replace(spread, state_rows=(3, 5)), replace(spread, comparisons=(5, 7))):
        assert "psp_d" in missed(report("embedded", alone, more))[0]
    assert not missed(report("embedded", alone, replace(record(Contestant("atr", nodes=2)), state_rows=(9, 9))))


LEAST = [
    ("two_keys", PLAIN, 1.0),
    ("two_keys", FORMER, 1.0),
    ("two_keys_large", PLAIN, 1.4),
    ("two_keys_large", FORMER, 1.4),
    ("great_circle", PLAIN, 1.7),
    ("great_circle_3", PLAIN, 1.7),
]


@pytest.mark.parametrize(("name", "rival", "least"), LEAST)
def test_one_lane_must_be_outrun(name: str, rival: str, least: float) -> None:
    own, other = Contestant("hash_hops", nodes=TOGETHER), OTHERS[rival]
    for factor, met in ((0.99, False), (1.01, True)):
        judged = report("spark", record(other, name, least * factor), record(own, name))
        assert [one.met for one in verdicts(judged) if f"/ {other.title}" in one.what] == [met]
    refused = Record.nothing(other, name, refused="no history")
    assert [one.found for one in verdicts(report("spark", refused, record(own, name))) if not one.met] == [
        "not measured"
    ]


def test_spark_s_rewrite_must_be_outrun() -> None:
    own = Contestant("psp_d", nodes=TOGETHER)
    for seconds, met in ((2.9, False), (3.1, True)):
        judged = report("spark", record(ON_SPARK, "band", seconds), record(own, "band"))
        assert [one.met for one in verdicts(judged) if "/ Spark" in one.what] == [met]


def test_hops_and_stages_are_counted() -> None:
    slow, quick = HopCost(4, 1.0, 1.41, 0.05), HopCost(4, 1.0, 1.39, 0.05)
    assert missed(replace(report("spark"), hop_costs=(slow,))) and not missed(
        replace(report("spark"), hop_costs=(quick,))
    )
    assert missed(report("spark", record(NO_SPREAD, stages=2))) and not missed(report("spark", record(NO_SPREAD)))
    uneven = replace(report("embedded"), evenness=(Even("psp", 2, 1.11),))
    assert missed(uneven)
    bound, unbound = Burst(4, 160, 1.31), Burst(4, None, 2.7)
    assert missed(replace(report("embedded"), bursts=(bound,))) and not missed(
        replace(report("embedded"), bursts=(unbound, bound._replace(balance=1.29)))
    )


def test_a_node_that_joins_must_not_hold_output_up() -> None:
    none, long = Pause("psp", "none", 0.1, 1.0, 1.0, 0.1), Pause("psp", "passive", 0.1, 1.21, 1.3, 0.1)
    assert not missed(replace(report("embedded"), pauses=(none, *PAUSES)))
    assert len(missed(replace(report("embedded"), pauses=(*PAUSES, long)))) == 1
    assert len(missed(replace(report("embedded"), pauses=()))) == len(PAUSES)


def test_gaps_are_those_from_the_step_of_the_change_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of the clock is later than the one before by one more: of two calls a step, a gap grows by two."""
    calls, changed = iter(range(1_000)), list[int]()
    spread = ms.Engine.spread

    def watched(self: ms.Engine, *given: object, **more: object) -> None:
        changed.append(self.manifest.step + 1)
        spread(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ms.Engine, "spread", watched)
    found = gaps("psp_d", 2, 20.0, 4.0, CONDITIONS["two keys"], 0, lambda: float(next(calls) ** 2))
    change, steps = 5, 10
    assert changed == [change] * len(CHANGES)
    every = [sorted(gap) for gap in found.values()]
    assert [len(gap) for gap in every] == [steps - change] * len(WAYS)
    firsts = sorted(gap[0] for gap in every)
    assert firsts == [4.0 * (len(WAYS) * change + place) + 1 for place in range(len(WAYS))]


def test_a_report_on_disk_is_the_report(tmp_path: Path) -> None:
    refused = Record.nothing(Contestant("lanes"), "two_keys", refused="no key")
    whole = replace(
        report("spark", record(NO_SPREAD), record(Contestant("psp", nodes=2)), refused),
        evenness=(Even("psp", 2, 1.05),),
        bursts=(Burst(2, None, 1.6), Burst(2, 320, 1.03)),
        hop_costs=(HopCost(4, 1.0, 1.2, 0.04),),
        pauses=(Pause("psp", "passive", 0.1, 1.1, 1.2, 0.09),),
    )
    whole.save(tmp_path)
    assert Report.load_from(tmp_path, "spark") == whole
    again = whole.with_records("two_keys", [record(NO_SPREAD, seconds=2.0)], SCENARIOS)
    assert len(again.records) == 1 and again.evenness == whole.evenness


def test_the_page_shows_what_was_found() -> None:
    refused = Record.nothing(Contestant("lanes"), "band", refused="no key ties them")
    theirs = record(ON_SPARK, "band")
    theirs = replace(theirs, measurement=replace(theirs.measurement, notes={"refused": "without equality predicate"}))
    of = report("spark", record(NO_SPREAD, "band"), record(Contestant("psp_d", nodes=2), "band"), refused, theirs)
    beside = replace(
        of, hop_costs=(HopCost(4, 1.0, 1.2, 0.04),), bursts=(Burst(2, None, 1.6), Burst(2, 320, 1.03)),
        pauses=(Pause("psp", "passive", 0.1, 1.1, 1.2, 0.09),),
    )  # fmt: skip
    text = page([beside], "Others were at work.")
    for words in (
        "Others were at work.",
        "refused: no key ties them",
        "without equality predicate",
        "| **a hop** | 50 ms",
        "| 2 | none | 1.60 |",
        "| 2 | 320 | 1.03 |",
        "| psp | passive | 100 ms | 1.10 | 1.20 | 90 ms |",
    ):
        assert words in text
    assert "WRONG" not in text and "WRONG" in page([report("spark", record(NO_SPREAD), record(ON_SPARK, results=8))])
