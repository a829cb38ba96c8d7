"""A plan is reviewed as soon as it does more than was foreseen, and every so often; reviews have a budget."""

from __future__ import annotations

import gc
import os
import runpy
import subprocess
import sys
import weakref
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.counters import Counters
from midstream.model.manifest import Manifest, QueryEntry, StreamProgress
from midstream.model.optimization import Optimization, OptimizerSettings, ReviewBudget
from midstream.model.schema import StreamSchema
from midstream.proposals.plan_group import plan_group
from midstream.review.review import Reviewing
from midstream.review.review_price import ANY_STEP, UNITS, price, trees_at_once, usual_step
from midstream.review.schedule import SAVED, in_turn, look, paid
from midstream.sql.parse import parse_query
from tests.forked import PATHS
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, GOOD_FIRST, SECOND, engine, query, reviews, rows, run

BEST, RATE, FILLED = "(A (B C))", 60, 24
YEAR_3000 = 32_503_680_000 * SECOND
REPROS = Path(__file__).parent / "repros"


@pytest.mark.parametrize("name", ["drift_not_followed", "price_of_a_second_move"])
def test_what_was_once_found_from_outside_ends_well(name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(REPROS / f"{name}.py"), run_name="__main__")
    assert not ended.value.code


def settled(effort: float = 0.03) -> ms.Engine:
    """An engine whose windows are full and whose plan is the best one."""
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", effort=effort)
    run(made, range(FILLED), BAD_FIRST, rate=RATE)
    return made


def kept(made: ms.Engine) -> Optimization:
    return made.manifest.optimizations["q"]


def reviewed(made: ms.Engine, since: int) -> list[int]:
    return [event.step for event in reviews(made.events) if event.step >= since]


def test_what_stays_as_it_is_is_seldom_reviewed() -> None:
    made = settled()
    run(made, range(FILLED, FILLED + 30), BAD_FIRST, rate=RATE)
    assert len(reviewed(made, FILLED)) <= 2


def test_a_flip_is_answered_within_five_steps() -> None:
    made = settled()
    run(made, range(FILLED, FILLED + 6), {**GOOD_FIRST, "A": 3000}, rate=3 * RATE)
    assert reviewed(made, FILLED)[0] <= FILLED + 2
    moves = [event.step for event in made.events if isinstance(event, ms.events.MigrationBegun)]
    assert moves and moves[-1] <= FILLED + 5


@pytest.mark.parametrize(("rate", "few"), [(3, True), (60, False)])
def test_the_first_review_waits_until_joins_have_made_what_it_takes(rate: int, few: bool) -> None:
    made = engine("ABC", "((A B) C)")
    made.optimize("q", mode="auto", review="1 second")
    run(made, range(FILLED), BAD_FIRST, rate=rate)
    assert (not reviewed(made, 0)) == few


def test_a_step_takes_at_least_what_its_joins_do_which_are_one_fewer_than_its_streams() -> None:
    assert usual_step(job(4)) == ANY_STEP + 4 * 2 * UNITS.operator_step


def test_the_strategies_are_loaded_before_the_first_review() -> None:
    code = "import sys; from tests.optimizer.drifting import engine, run; run(engine(), [0, 1]); print(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": PATHS}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "midstream.migration.jisc" in done.stdout.split(), done.stderr


def test_bursts_that_are_known_are_not_reviewed_for_ever() -> None:
    made = engine("ABC", BEST)
    made.optimize("q", mode="auto", review="1 hour")
    for step in range(60):
        made.push(rows(step, dict.fromkeys("ABC", 3_000), rate=1_500 if step % 4 < 2 else 500))
    assert len(reviewed(made, 41)) <= 2


def test_while_a_proposal_waits_excess_work_pays_for_no_review() -> None:
    made = engine("ABC", "((A B) C)")
    made.optimize("q", mode="suggest", effort=0.001)
    run(made, range(FILLED), BAD_FIRST, rate=RATE)
    waiting = kept(made).proposal
    assert waiting is not None and waiting.state == "waits"
    run(made, range(FILLED, FILLED + 8), BAD_FIRST, rate=4 * RATE)
    assert not reviewed(made, FILLED + 1) and kept(made).excess == 0.0


def test_after_a_command_policies_look_again() -> None:
    made = settled(effort=1.0)
    made.optimize("q", margin=0.2, mode="auto", review="1 second", effort=1.0)
    run(made, range(FILLED, FILLED + 3), BAD_FIRST, rate=RATE)
    assert reviewed(made, FILLED)


def test_a_bad_timestamp_in_a_stream_that_a_query_does_not_read_does_not_matter_to_its_reviews() -> None:
    found = list[list[int]]()
    for bad in ([], [YEAR_3000]):
        made = engine(plan="((A B) C)")
        made.create_stream("Z", COLUMNS, timestamp="ts")
        run(made, range(2))
        far = pa.table({"k": [1] * len(bad), "ts": pa.array(bad, pa.timestamp("us"))})
        made.push({**rows(2, BAD_FIRST), "Z": far})
        run(made, range(3, 15))
        found.append([event.step for event in reviews(made.events)])
    assert found[0] and found[0] == found[1]


@pytest.mark.parametrize("effort", [0, -1, 1.5, True, "much"])
def test_an_effort_that_is_no_share_is_refused(effort: object) -> None:
    with pytest.raises(ms.QueryError, match="effort is"):
        engine("ABC").optimize("q", effort=effort)  # type: ignore[arg-type]


SPARED = 1e9  # ns of work a second that another plan might spare


def job(queries: int, effort: float = 0.03, **pace: float) -> Manifest:
    names = [f"q{at:04d}" for at in range(queries)]
    streams = {name: StreamSchema(name, COLUMNS, "ts") for name in "ABC"}
    bound = parse_query(query("ABC"), streams)
    kept = Optimization(reviewed=0, price=price(3, 0), plan="((A B) C)", pace=SPARED, spared=SPARED)
    return Manifest(
        step=5,
        streams=streams,
        queries={name: QueryEntry(bound, "((A B) C)", since=0) for name in names},
        optimizations={name: replace(kept, **pace) for name in names},
        optimizer=OptimizerSettings(effort=effort),
        progress={"A": StreamProgress(greatest=20 * SECOND)},
    )


def test_of_many_queries_none_starves_and_no_step_pays_for_more_than_a_usual_one() -> None:
    manifest, turns = job(60, effort=1.0), dict[str, int]()
    for step in range(5, 400):
        now = (step + 20) * SECOND
        compared = Counters(comparisons=step * 10**6)  # Where nothing is done, there is nothing to review.
        queries = {name: replace(entry, counters=compared) for name, entry in manifest.queries.items()}
        manifest = replace(manifest, step=step, queries=queries, progress={"A": StreamProgress(greatest=now)})
        manifest, wanted = look(manifest)
        chosen = in_turn(manifest, wanted)
        assert sum(one.one.kept.price for one in chosen) <= usual_step(manifest) + price(3, 0) + 5e6
        for one in chosen:
            turns[one.one.lead] = turns.get(one.one.lead, 0) + 1
            manifest = paid(manifest, one.one, price(3, 0))
            after = replace(one.one.kept, reviewed=now, reviewed_in=step)
            manifest = replace(manifest, optimizations={**manifest.optimizations, one.one.lead: after})
    assert len(turns) == 60 and max(turns.values()) - min(turns.values()) <= 1


def test_reviews_take_the_share_that_is_allowed_and_excess_work_pays_for_one_at_once() -> None:
    manifest = replace(job(1), reviews=ReviewBudget(5, 0.0, 0.0))
    later = replace(manifest, step=6)
    assert not look(later)[1]
    needed = round(price(3, 0) / (0.03 * usual_step(manifest))) + 1
    assert in_turn(*look(replace(manifest, step=5 + needed)))
    kept = manifest.optimizations["q0000"]
    lost = replace(later, optimizations={"q0000": replace(kept, excess=price(3, 0))})
    (chosen,) = in_turn(*look(lost))
    assert paid(lost, chosen.one, price(3, 0)).reviews.left == pytest.approx(0.03 * usual_step(later))


def test_a_plan_of_which_another_could_spare_little_is_not_reviewed_however_much_is_saved_up() -> None:
    budget = ReviewBudget(5, 0.0, 10 * price(3, 0))
    for pace, seldom in ((0.0, True), (0.01 * price(3, 0), True), (price(3, 0), False)):
        known = job(1, pace=pace, spared=pace)
        new = replace(known, optimizations={"q0000": replace(known.optimizations["q0000"], plan="")})
        for manifest in (known, new):
            assert bool(look(replace(manifest, reviews=budget))[1]) != seldom


def test_after_moves_in_vain_more_must_be_lost_before_the_next_review() -> None:
    wanted = list[int]()
    for hurdle, times in ((1.0, 0.9), (1.0, 1.1), (3.0, 1.1), (3.0, 2.9), (3.0, 3.1)):
        lost = job(1, pace=0.0, spared=0.0, hurdle=hurdle, excess=times * price(3, 0))
        wanted.append(len(look(replace(lost, reviews=ReviewBudget(5)))[1]))
    assert wanted == [0, 1, 0, 0, 1]


def test_after_a_switch_the_next_review_waits_for_what_a_move_costs_too() -> None:
    made = engine("ABC", "((A B) C)")
    made.optimize("q", mode="auto")
    for step in range(FILLED):
        run(made, [step], BAD_FIRST, rate=RATE)
        if any(isinstance(event, ms.events.MigrationBegun) for event in made.events):
            break
    assert reviews(made.events)[-1].decision == "switch" and kept(made).hurdle > 1.0


def test_while_reviews_must_agree_the_next_one_comes_when_the_better_plan_would_have_saved_its_price() -> None:
    made = engine("ABC", "((A B) C)")
    made.optimize("q", mode="auto", review="1 hour", reviews=2)
    run(made, range(60), BAD_FIRST, rate=RATE)
    first, second = reviews(made.events)[:2]
    assert first.decision == "stay" and "1 reviews of 2" in first.reason
    assert second.decision == "switch" and second.step < 60


def test_no_more_than_some_reviews_are_saved_up_for() -> None:
    manifest = replace(job(1), step=10**6, reviews=ReviewBudget(5, 0.0, 0.0))
    (one,) = look(manifest)[1]
    assert paid(manifest, one.one, price(3, 0)).reviews.left == pytest.approx((SAVED - 1) * price(3, 0))


def test_a_review_leaves_nothing_for_a_garbage_collection() -> None:
    made = settled()
    review = Reviewing(made.manifest, plan_group(made.manifest, "q"), FILLED * SECOND, made._store)
    assert review.decide() and review.predict("((A B) C)")
    left = weakref.ref(review.estimate.statistics.samples)
    gc.disable()
    try:
        del review
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(("names", "least"), [("ABCDEFGHIJKLMN", 2), ("ABCDEFGH", 1)])
def test_a_join_of_many_streams_is_reviewed_in_slices_and_moves_to_a_better_plan(names: str, least: int) -> None:
    """Of a few streams the plans are found in one step and weighed in the next, where steps are short."""
    made = engine(names)
    made.optimize("q", mode="auto", review="2 seconds", effort=1.0)
    keys, searching = {name: 3 if name in "ABC" else 400 for name in names}, 0
    for step in range(40):
        run(made, [step], keys, rate=6)
        searching += bool(kept(made).searched)
        if any(isinstance(event, ms.events.MigrationBegun) for event in made.events):
            break
    assert searching >= least
    plan = made.manifest.queries["q"].plan
    assert "(A B)" not in plan and "(B A)" not in plan, "what makes many rows is no longer joined first"


def test_a_review_of_few_streams_is_done_at_once_where_the_step_is_about_to_explode() -> None:
    made = engine("ABCDEFGH")
    run(made, [0], dict.fromkeys("ABCDEFGH", 400), rate=6)
    one = plan_group(made.manifest, "q")
    assert trees_at_once(made.manifest, one) is not None
    assert trees_at_once(made.manifest, one, in_a_hurry=True) is None
