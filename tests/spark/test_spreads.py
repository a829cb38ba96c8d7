"""Joins that are spread over nodes run on Spark: every step as DuckDB has it, however they are spread and change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.spread import Spread
from midstream.model.events import CommandRefused
from midstream.model.node_spread import NodeSpread
from midstream.ring.spreading import spreadings
from midstream.spark import parcel
from midstream.spark.parcel import ParcelFiles
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same, assert_same
from tests.oracle.spec import SECOND
from tests.property.drive import Case, start
from tests.property.keyed import keyed, pair, stream
from tests.spark.drive import Hooks, Place, finish, job
from tests.spark.spread_job import BAND, JOINS, ONE_KEY, STREAMS, THETA, TWO_KEYS, WIDE_BAND, parcels_below, spread_case
from tests.spark.test_job_counts import done


def run(
    spark: SparkSession, place: Place, case: Case, spreads: Mapping[str, str], steps: range, nodes: int = 3
) -> None:
    """Feed these steps and run the job until it has done them."""
    for step in steps:
        for spec in STREAMS:
            place.feed(spec.name, step, case.steps[step].get(spec.name, spec.schema.empty_table()))
    made = job(spark, place, STREAMS, {}, lanes=2)
    for life in case.queries:
        asked = {"spread": spreads[life.name], "nodes": nodes} if life.name in spreads else {}
        made.query(life.name, life.spec.cql(), None, ms.sinks.files(place.answers(life.name)), **asked)
    events = finish(made).events
    assert not [event for event in events if isinstance(event, CommandRefused)]


def check(place: Place, case: Case, delayed: str = "") -> None:
    """Fail unless the sinks have the oracle's answers, each step's own but those of the query that is `delayed`."""
    for name, answer in case.expected().items():
        assert answer.table.num_rows
        found = place.by_step(name, len(case.steps))
        if name == delayed:
            assert_same([table for table in found if table is not None], answer, name)
        else:
            assert_each_step_same(found, answer, name)


def placed(spread: NodeSpread | None) -> NodeSpread:
    """What must be the same in each host: `span` and `moment` are kept by those alone that go by them."""
    assert spread is not None
    return replace(spread, span=0)


@pytest.mark.parametrize("bodies", ["in parcels", "in files"])
def test_every_way_side_by_side(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bodies: str
) -> None:
    """Each node has the rows and does the work that it has and does in the embedded engine."""
    removed, remove = list[Path](), ParcelFiles.remove

    def noted(self: ParcelFiles) -> None:
        removed.extend(parcels_below(tmp_path))
        remove(self)

    monkeypatch.setattr(ParcelFiles, "remove", noted)
    if bodies == "in files":
        monkeypatch.setattr(parcel, "LEAST", 1)
    assert JOINS.keys() == spreadings().keys()
    case, place = spread_case(JOINS, 40, 70), Place(tmp_path)
    run(spark, place, case, {name: name for name in JOINS}, range(len(case.steps)))
    check(place, case)
    engine = start(case.streams, lanes=2)
    for life in case.queries:
        engine.add_query(life.name, life.spec.cql(), spread=life.name, nodes=3)
    for step in case.steps:
        engine.push(dict(step))
    found = {name: placed(entry.nodes) for name, entry in place.manifest().queries.items()}
    assert found == {name: placed(entry.nodes) for name, entry in engine.manifest.queries.items()}
    counted = {key: counters for key, counters in engine.manifest.operators.items()}
    assert place.manifest().operators == counted
    assert bool(removed) == (bodies == "in files")
    assert not parcels_below(tmp_path)


def test_a_task_may_have_none_of_a_query_s_nodes(spark: SparkSession, tmp_path: Path) -> None:
    """Another query has more lanes than these have nodes, and so has a step more tasks."""
    joins = {"hash_hops": TWO_KEYS, "psp": BAND, "psp_d": BAND, "plain": ONE_KEY}
    case, place = spread_case(joins, 40, 70), Place(tmp_path)
    run(spark, place, case, {name: name for name in joins if name != "plain"}, range(len(case.steps)), nodes=1)
    check(place, case)


def test_queries_share_a_ring_while_one_comes_and_one_goes(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """Each has the oracle's answers from its own start, and each node the rows and the work of the embedded engine."""
    for way in ("psp", "hash_hops"):
        case, place = (
            spread_case({"q": BAND, "wide": WIDE_BAND, "late": WIDE_BAND}, 25, 45, 60, 75),
            Place(tmp_path / way),
        )
        lives = (case.queries[0], replace(case.queries[1], until=3), replace(case.queries[2], since=2))
        case = replace(case, queries=lives)
        sink = {"path": str(place.answers("late")), "format": "parquet"}
        late = AddQuery("late", WIDE_BAND.cql(), sink=sink, spread=way, nodes=3)
        hooks.give(2, late)
        hooks.give(3, DropQuery("wide"))
        for step, tables in enumerate(case.steps):
            for spec in STREAMS:
                place.feed(spec.name, step, tables.get(spec.name, spec.schema.empty_table()))
        made = job(spark, place, STREAMS, {}, lanes=2)
        for life in case.queries[:2]:
            made.query(life.name, life.spec.cql(), None, ms.sinks.files(place.answers(life.name)), spread=way, nodes=3)
        assert not [event for event in finish(made).events if isinstance(event, CommandRefused)]
        check(place, case)
        engine = start(case.streams, lanes=2)
        for step, tables in enumerate(case.steps):
            for life in case.queries:
                if life.since == step:
                    engine.add_query(life.name, life.spec.cql(), spread=way, nodes=3)
                if life.until == step:
                    engine.drop_query(life.name)
            engine.push(dict(tables))
        entries, expected = place.manifest().queries, engine.manifest.queries
        assert entries["q"].group == entries["late"].group
        assert {k: placed(v.nodes) for k, v in entries.items()} == {k: placed(v.nodes) for k, v in expected.items()}


CHANGES = ("psp", "hash_hops", "off", "atr", "psp_i", "off")


def test_spreads_change_amid_the_run(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """One query goes through ways and lanes, one leaves a migration for nodes, which release what it held back."""
    case = spread_case({"q": BAND, "other": BAND, "keyed": ONE_KEY}, 20, 32, 44, 56, 68, 80, 90)
    place = Place(tmp_path)
    for step, scheme in enumerate(CHANGES, start=1):
        hooks.give(step, Spread("q", scheme, None if scheme == "off" else 2 + step % 3))
    hooks.give(1, Migrate("other", "(A (B C))", "parallel_track", {"hold_new": True}))
    hooks.give(2, Spread("other", "psp_d", 2))
    hooks.give(4, Spread("other", "off"))
    hooks.give(3, Spread("keyed", "lanes", 3))
    run(spark, place, case, {"q": "psp_d"}, range(3))
    run(spark, place, case, {"q": "psp_d"}, range(3, len(case.steps)))
    check(place, case, delayed="other")
    assert place.manifest().queries["q"].nodes is None


def test_rows_that_come_back_from_nodes_are_met(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """By every scheme and among three lanes; what was kept before the spread and amid it meets what comes after."""
    streams = [stream(name, pa.int64(), lateness=12 * SECOND) for name in "AB"]
    keys, of = list(range(24)), dict(zip("AB", streams, strict=True))
    steps = [
        {"A": keyed(of["A"], keys, 1), "B": keyed(of["B"], keys, 100)},
        {"B": keyed(of["B"], keys, 101)},
        {"A": keyed(of["A"], keys, 102)},
    ]
    lives = tuple(Lifetime(scheme, pair("A", "B", window=20 * SECOND)) for scheme in spreadings())
    case, place = Case(tuple(streams), tuple(steps), lives), Place(tmp_path)
    for scheme in spreadings():
        hooks.give(1, Spread(scheme, scheme, 2))
        hooks.give(2, Spread(scheme, "off"))
    for step, tables in enumerate(steps):
        for name, spec in of.items():
            place.feed(name, step, tables.get(name, spec.schema.empty_table()))
    made = job(spark, place, streams, {}, lanes=3)
    for life in lives:
        made.query(life.name, life.spec.cql(), None, ms.sinks.files(place.answers(life.name)))
    assert not [event for event in finish(made).events if isinstance(event, CommandRefused)]
    for name, answer in case.expected().items():
        assert answer.table.num_rows == 48
        assert_each_step_same(place.by_step(name, 3), answer, name)


RESIZED: Mapping[str, tuple[tuple[int, str], ...]] = {
    "psp": ((5, "passive"), (2, "aggressive"), (4, "passive")),
    "psp_i": ((2, "passive"), (5, "passive"), (3, "aggressive")),
    "psp_d": ((5, "aggressive"), (2, "passive"), (6, "passive")),
    "hash_hops": ((5, "passive"), (3, "passive"), (4, "aggressive")),
}
"""How many nodes there are with steps 1, 2 and 3, and how they come or go."""


def test_nodes_come_and_go_both_ways(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    """As in the embedded engine: the same rows at the same nodes, those that run out among them, and the same work."""
    case = spread_case({name: JOINS[name] for name in RESIZED}, 15, 30, 42, 54, 66, 78, 90)
    place, engine = Place(tmp_path), start(case.streams, lanes=2)
    for life in case.queries:
        engine.add_query(life.name, life.spec.cql(), spread=life.name, nodes=3)
    for number, step in enumerate(case.steps):
        for name, changes in RESIZED.items() if 1 <= number <= 3 else ():
            nodes, way = changes[number - 1]
            bound = {"count_bound": 4} if name == "psp_d" else {}
            engine.spread(name, name, nodes, relocation=way, **bound)
            hooks.give(number, Spread(name, name, nodes, {"relocation": way, **bound}))
        engine.push(dict(step))
        if number == 3:
            assert {len(entry.nodes.all) for entry in engine.manifest.queries.values() if entry.nodes} >= {1, 2}
    run(spark, place, case, {name: name for name in RESIZED}, range(3))
    run(spark, place, case, {name: name for name in RESIZED}, range(3, len(case.steps)))
    check(place, case)
    found = {name: placed(entry.nodes) for name, entry in place.manifest().queries.items()}
    assert found == {name: placed(entry.nodes) for name, entry in engine.manifest.queries.items()}


def test_a_step_without_a_spread_has_no_more_shuffles(spark: SparkSession, tmp_path: Path) -> None:
    """A query in one lane is done where its rows are read, without a shuffle. One that is spread pays for one to its
    nodes and for one for each of its hops; where partial results stay where they are, there is one hop.
    """
    counts = {"lanes": 0, "hash_hops": 3, "psp_d": 4, "atr": 2, "one_lane": 2}
    for name, shuffles in counts.items():
        spreads = {} if name == "lanes" else {"q": name}
        newest = max((job.jobId() for job in done(spark, -1)), default=-1)
        case, place = spread_case({"q": TWO_KEYS}), Place(tmp_path / name)
        run(spark, place, case, spreads, range(len(case.steps)))
        check(place, case)
        assert [job.stageIds().size() - 1 for job in done(spark, newest)] == [shuffles], name


def test_a_running_job_takes_the_command(spark: SparkSession, hooks: Hooks, tmp_path: Path) -> None:
    case, place = spread_case({"q": THETA}, 50), Place(tmp_path)
    hooks.give(1, Spread("q", "auto", 3))
    run(spark, place, case, {}, range(len(case.steps)))
    check(place, case)
    spread = place.manifest().queries["q"].nodes
    assert spread is not None
    assert (spread.scheme, spread.nodes) == ("psp_d", 3)


def test_what_cannot_be_spread_is_refused_when_it_is_declared(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(tmp_path)
    made = job(spark, place, STREAMS, {})
    with pytest.raises(ms.PlanError, match="cannot be 1025"):
        made.query("q", THETA.cql(), spread="psp", nodes=1025)
    with pytest.raises(ms.QueryError, match="aggregate cannot be spread"):
        made.query("q", "SELECT COUNT(*) AS n FROM A, B WHERE A.n < B.n WINDOW 3 SECONDS EVERY 1 SECOND", spread="psp")
