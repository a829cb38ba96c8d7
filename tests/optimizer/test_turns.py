"""Whose plan is reviewed when: each by the time of its own streams, none starves, and no step pays for many."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from midstream.model.manifest import Manifest, QueryEntry, StreamProgress
from midstream.model.optimization import Optimization, OptimizerSettings
from midstream.model.schema import StreamSchema
from midstream.step.reviewing.affordable import SHORT, price, work
from midstream.step.reviewing.plan_group import PlanGroup, plan_groups
from midstream.step.reviewing.turns import MOST_REVIEWS, due, timely
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, SECOND, engine, query, reviews, rows, run

BAD = "((A B) C)"
SQL = query("ABC")
YEAR_3000 = 32_503_680_000 * SECOND


def test_a_bad_timestamp_in_a_stream_that_a_query_does_not_read_does_not_matter_to_its_reviews() -> None:
    found = list[list[int]]()
    for bad in ([], [YEAR_3000]):
        made = engine(plan=BAD)
        made.create_stream("Z", COLUMNS, timestamp="ts")
        run(made, range(2))
        far = pa.table({"k": [1] * len(bad), "ts": pa.array(bad, pa.timestamp("us"))})
        made.push({**rows(2, BAD_FIRST), "Z": far})
        run(made, range(3, 15))
        found.append([event.step for event in reviews(made.events)])
    assert found[0] and found[0] == found[1]


def chosen_of(manifest: Manifest) -> list[tuple[PlanGroup, int]]:
    """What is reviewed in a step of this manifest."""
    return due(manifest, timely(manifest))


def test_a_query_that_was_reviewed_at_a_time_that_its_streams_have_not_reached_is_due() -> None:
    made = engine(plan=BAD)
    run(made, range(2))
    manifest = made.manifest
    kept = replace(manifest.optimizations["q"], reviewed=YEAR_3000)
    assert not chosen_of(manifest)
    assert [one.lead for one, _ in chosen_of(replace(manifest, optimizations={"q": kept}))] == ["q"]


def test_a_query_of_so_many_streams_that_not_all_sets_are_weighed_is_reviewed_again_and_again() -> None:
    names = "ABCDEFGHIJKLMN"
    made = engine(names)
    made.optimize("q", mode="suggest", review="1 second", effort=1)
    run(made, range(3), dict.fromkeys(names, 500), rate=4)
    assert len(reviews(made.events)) == 1
    later = {name: replace(one, greatest=60 * SECOND) for name, one in made.manifest.progress.items()}
    turns = [chosen_of(replace(made.manifest, step=step, progress=later)) for step in (4, 60)]
    assert [len(turn) for turn in turns] == [0, 1]


def test_the_work_of_a_chain_is_counted_once_however_many_queries_share_it() -> None:
    found = list[float]()
    for mates in (0, 3):
        made = engine(plan=BAD)
        for number in range(mates):
            made.add_query(f"z{number}", query("ABC"), plan=BAD)
        made.optimize(mode="off")
        run(made, range(8))
        (one,) = plan_groups(made.manifest)
        assert len(one.queries) == 1 + mates
        found.append(work(made.manifest, one))
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("queries", "effort", "a_step"),
    [(1_000, 0.03, MOST_REVIEWS), (120, 0.001, int(SHORT / price(3, 0)))],
    ids=["a thousand queries", "little is paid for"],
)
def test_of_many_queries_none_starves(queries: int, effort: float, a_step: int) -> None:
    """Those with a short time between reviews are always due, and hold nobody up."""
    names = [f"q{at:04d}" for at in range(queries)]
    settings = OptimizerSettings(effort=effort)
    often = replace(settings, review=SECOND)
    manifest = Manifest(
        step=5,
        streams={name: StreamSchema(name, COLUMNS, "ts") for name in "ABC"},
        queries={name: QueryEntry(SQL, "((A B) C)", since=0) for name in names},
        optimizations={name: Optimization(often if at % 2 else None, reviewed=0) for at, name in enumerate(names)},
        optimizer=settings,
    )
    turns: dict[str, list[int]] = {name: [] for name in names}
    for step in range(queries // a_step + 50):
        now = (step + 20) * SECOND
        manifest = replace(manifest, progress={"A": StreamProgress(greatest=now)})
        chosen = [one.lead for one, _ in chosen_of(manifest)]
        assert len(chosen) == a_step
        for name in chosen:
            turns[name].append(step)
        reviewed = {name: replace(manifest.optimizations[name], reviewed=now, reviewed_in=step + 6) for name in chosen}
        manifest = replace(manifest, optimizations={**manifest.optimizations, **reviewed})
    assert max(found[0] for found in turns.values()) < queries // a_step, "somebody starves"
    assert max(map(len, turns.values())) == 2 and sum(map(len, turns.values())) == queries + 50 * a_step
