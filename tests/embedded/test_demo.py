"""The demo's acts without Spark: flights drift, and the plan changes unasked; one goes over to nodes."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from midstream.cli.demo_act import show_act
from midstream.demo.acts import LATE_IN_THE_HEAT as ACT
from midstream.demo.acts import NEAR_TOGETHER
from midstream.demo.flights import prepare, read_streams, with_places
from midstream.demo.performance import Performance, performance
from midstream.demo.play import rehearse
from midstream.demo.whole_answer import AnswerCheck
from midstream.model.events import QuerySpread

HEAT_LAST = "((D L) W)"


@pytest.fixture(scope="module", params=[4, 53])
def weeks(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture(scope="module")
def streams() -> dict[str, pa.Table]:
    read = read_streams()
    return {name: read[name] for name in ACT.streams}


@pytest.fixture(scope="module")
def figures(streams: dict[str, pa.Table], weeks: int, tmp_path_factory: pytest.TempPathFactory) -> Performance:
    replays = prepare(streams, tmp_path_factory.mktemp("input"), ACT.span(weeks))
    kept = rehearse(ACT, replays, "off").steps
    return performance(ACT.old_plan, rehearse(ACT, replays, "auto").events, kept, 0.0)


def test_once_it_is_hot_the_query_moves_and_saves_most_of_the_work(figures: Performance) -> None:
    before, after = figures.phases
    assert (before.plan, after.plan) == (ACT.old_plan, HEAT_LAST)
    assert before.comparisons == before.old_plan_comparisons
    assert after.comparisons < 0.2 * after.old_plan_comparisons
    (decided,) = [review for review in figures.reviews if review.decision == "switch"]
    assert (decided.step, decided.chosen) == (after.first, HEAT_LAST)
    assert decided.foreseen[HEAT_LAST] < decided.foreseen[ACT.old_plan]
    assert decided.real is not None or decided == figures.reviews[0]


def test_while_it_is_cold_every_review_stays(
    figures: Performance, streams: dict[str, pa.Table], weeks: int, tmp_path: Path
) -> None:
    before, after = figures.phases
    cold = [review for review in figures.reviews if review.step < after.first]
    assert {(review.plan, review.decision) for review in cold} <= {(before.plan, "stay")}
    weather = prepare(streams, tmp_path, ACT.span(weeks))["weather"].files
    hottest = [max(filter(None, parquet.read_table(file)["temp"].to_pylist()), default=0) for file in weather]
    assert max(hottest[: after.first + 1]) > 80, "the plan changed before a day was hot"


def test_the_screen_shows_what_was_proposed_and_why(
    figures: Performance, weeks: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = AnswerCheck(1, 1, 0, 0, (), ())
    show_act(ACT, ACT.span(weeks), figures, verdict, {"auto": (0.25, 0.75), "off": (0.5, 1.5)}, tmp_path)
    said = capsys.readouterr().out
    why = re.search(
        rf"{re.escape(HEAT_LAST)} instead of {re.escape(ACT.old_plan)}. Why: a step takes ([\d.]+) ms, "
        r"would take ([\d.]+) ms: saves \d+% of the join's work for [\d.]+ ms of work by",
        said,
    )
    assert why is not None and float(why[2]) < 0.9 * float(why[1])
    assert "the slowest 1.50 s, and 1.00 s with the optimizer and its reviews, the slowest 0.75 s" in said
    assert "It saved" in said and f"foreseen {HEAT_LAST}" in said


def test_a_step_in_which_a_query_is_spread_begins_a_phase(tmp_path: Path) -> None:
    read = read_streams()
    span = NEAR_TOGETHER.span(4)
    replays = prepare({name: read[name] for name in NEAR_TOGETHER.streams}, tmp_path, span)
    kept = rehearse(NEAR_TOGETHER, replays, "off")
    assert sum(sum(step.rows_out.values()) for step in kept.steps) > 500
    events = [*kept.events, QuerySpread(5, "flights", "one_lane", "psp_d", 4)]
    before, after = performance(NEAR_TOGETHER.begins, events, kept.steps, 0.0).phases
    assert (before.plan, before.last, after.plan, after.first) == ("one_lane", 4, "psp_d, 4 nodes", 5)


def test_places_of_destinations_that_are_not_known_are_null() -> None:
    flights = pa.table({"dest": ["SJU", "BOS"]})
    placed = with_places(flights, pa.table({"faa": ["ATL", "BOS"], "lat": [33.6, 42.4], "lon": [-84.4, -71.0]}))
    assert placed.select(["lat", "lon"]).to_pylist() == [{"lat": None, "lon": None}, {"lat": 42.4, "lon": -71.0}]
