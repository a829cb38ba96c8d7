"""Transitions: pieces of a plan that move, alone, nested, overlapping, interrupted."""

from __future__ import annotations

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import CheckpointError
from midstream.model.events import MigrationBegun, MigrationEnded, MigrationProgressed
from midstream.plan.decompose import decompose
from midstream.runtime.operator import Operator
from midstream.units.program import unit_of
from tests.unit.migration.rides import Ride, rows_of

LASTING = ("gpt", "hybmig", "parallel_track")


def root(ride: Ride, notation: str) -> Operator:
    return unit_of(ride.engine.manifest, "q").box(notation).roots[0]


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ("(((A B) C) D)", "((A B) (C D))", ["A+B+C+D of A+B, C, D"]),
        ("(((A B) C) D)", "(((B C) A) D)", ["A+B+C of A, B, C"]),
        ("(((A B) C) D)", "(D (C (B A)))", []),
        ("((((A B) C) D) E)", "((((C B) A) E) D)", ["A+B+C of A, B, C", "A+B+C+D+E of A+B+C, D, E"]),
        ("((A B) C)", "[A: B C | B: A C | C: A B]", ["A+B+C of A, B, C"]),
    ],
)
def test_a_migration_is_split_at_common_subplans(old: str, new: str, pieces: list[str]) -> None:
    """HybMig §3.1, Fig. 5: what both plans have in common stands as one stream; equal pieces are left out."""
    ride = Ride(old, streams="".join(sorted(c for c in set(old) if c.isalpha()))).go(1)
    boxes = unit_of(ride.engine.manifest, "q")
    tasks = decompose(boxes.box(old).plan, boxes.box(new).plan)
    said = [
        f"{'+'.join(sorted(t.sources))} of {', '.join(sorted('+'.join(sorted(u)) for u in t.units))}" for t in tasks
    ]
    assert said == pieces


@pytest.mark.parametrize("strategy", LASTING)
@pytest.mark.parametrize("windows", ["", "A [RANGE 8 SECONDS], B [ROWS 12], C [RANGE 3 SECONDS], D [RANGE 8 SECONDS]"])
@pytest.mark.parametrize("levels", [False, True])
def test_migrations_overlap_and_lead_back(strategy: str, windows: str, levels: bool) -> None:
    moves = {
        4: ("(A (B (C D)))", strategy, {}),
        6: ("((A C) (B D))", strategy, {}),
        7: ("(((A B) C) D)", strategy, {"decompose": False}),
        8: ("((A B) (C D))", "hybmig", {}),
    }
    still = Ride("(((A B) C) D)", windows=windows, levels=levels).go(30)
    ride = Ride("(((A B) C) D)", windows=windows, levels=levels).go(9, moves)
    # A piece that is over in one strategy sooner than in another goes by itself.
    assert len(ride.engine.migration("q")["under_way"]) >= 2
    ride.go(21)
    assert ride.found == still.found
    assert still.total
    begun, ended = ride.events(MigrationBegun), ride.events(MigrationEnded)
    assert [(e.strategy, e.new) for e in begun] == [(s, p) for p, s, _ in moves.values()]
    assert sorted((e.strategy, e.plan) for e in ended) == sorted((e.strategy, e.new) for e in begun)
    assert ride.engine.migration("q") is None
    assert {e.strategy for e in ride.events(MigrationProgressed)} == {strategy, "hybmig"}
    assert {box["box"] for lane in ride.engine.manifest.lane_states.values() for box in lane.boxes.values()} == {"plan"}


@pytest.mark.parametrize("strategy", LASTING)
@pytest.mark.parametrize("new", ["((A B) (C D))", "(((A C) B) D)", "(D ((A B) C))"])
def test_what_both_plans_have_in_common_counts_as_one_stream(strategy: str, new: str) -> None:
    """A combination of a common subplan is new as soon as one of its rows is, for it was made then."""
    assert Ride("(((A B) C) D)").go(20, {9: (new, strategy, {})}).found == Ride("(((A B) C) D)").go(20).found


@pytest.mark.parametrize("strategy", LASTING)
def test_a_lost_state_of_a_view_ends_the_migration_and_nothing_else(strategy: str) -> None:
    """What a view holds nobody could compute again, so the plan it leads to goes on from base rows."""
    still = Ride("(((A B) C) D)").go(20)
    ride = Ride("(((A B) C) D)").go(6, {3: ("(A (B (C D)))", strategy, {})})
    (lane,) = ride.engine.manifest.lane_states.values()
    views = [name for name in lane.states if _is_in_view(ride, name) and lane.states[name].chunks]
    assert views
    for ref in lane.states[views[0]].chunks:
        del ride.engine._store._chunks[ref.name]
    ride.go(14)
    assert ride.found == still.found
    assert [e.step for e in ride.events(MigrationEnded)] == [6]


@pytest.mark.parametrize("strategy", LASTING)
def test_migrations_do_not_nest_without_end(strategy: str) -> None:
    """Past a depth the running ones are finished first, and their events say by what."""
    plans = ["(A (B (C D)))", "(((A B) C) D)"]
    moves = {step: (plans[step % 2], strategy, {}) for step in range(4, 16)}
    still = Ride("(((A B) C) D)", seconds=20, rows=2).go(16)
    ride = Ride("(((A B) C) D)", seconds=20, rows=2)
    for _ in range(16):
        ride.go(1, moves)
        running = ride.engine.migration("q")
        assert running is None or len(running["under_way"]) <= 8
    assert ride.found == still.found
    assert [e.detail["finished_by"] for e in ride.events(MigrationEnded) if "finished_by" in e.detail]


def _is_in_view(ride: Ride, name: str) -> bool:
    plain = {spec.id for op in root(ride, "(A (B (C D)))").walk() for _, spec in op.states()}
    plain |= {spec.id for op in root(ride, "(((A B) C) D)").walk() for _, spec in op.states()}
    return name not in plain and not name.endswith(".rows")


@pytest.mark.parametrize("strategy", LASTING)
def test_rescaling_ends_a_migration(strategy: str) -> None:
    still = Ride("(((A B) C) D)").go(20)
    ride = Ride("(((A B) C) D)").go(6, {3: ("(A (B (C D)))", strategy, {})})
    ride.engine.rescale(lanes=3)
    ride.go(14)
    assert ride.found == still.found
    (ended,) = ride.events(MigrationEnded)
    assert (ended.step, ended.detail["finished_by"], ended.plan) == (6, "rescale", "(A (B (C D)))")


def test_a_manifest_with_an_unknown_migration_is_refused() -> None:
    ride = Ride("(((A B) C) D)").go(6, {3: ("(A (B (C D)))", "hybmig", {})})
    (lane,) = ride.engine.manifest.lane_states.values()
    lane.boxes["q"]["placed"][0]["strategy"] = "teleport"  # type: ignore[index]
    with pytest.raises(CheckpointError, match="'teleport', the strategy of a running migration"):
        ride.go(1)


def test_plans_that_share_their_root_keep_what_is_below() -> None:
    """One query's root has done the other's work, but not the work of what only the other has below it."""
    ride = Ride("(((A B) C) D)").go(0)
    ride.engine.add_query("r", ride.sql, plan="((A (B C)) D)")
    alone = Ride("((A (B C)) D)").go(20)
    got = [rows_of(ride.engine.push(ride.batch(number))["r"]) for number in range(10)]
    ride.engine.drop_query("q")
    got += [rows_of(ride.engine.push(ride.batch(number))["r"]) for number in range(10, 20)]
    assert got == alone.found


def test_a_migration_shows_what_it_is_at() -> None:
    ride = Ride("(((A B) C) D)").go(6, {3: ("((A B) (C D))", "hybmig", {})})
    running = ride.engine.migration("q")
    assert running is not None
    assert (running["strategy"], running["begun"], running["plan"]) == ("hybmig", 3, "((A B) (C D))")
    assert 0 < running["progress"] < 1
    assert running["old_serves"] == "results with C+D all old; disconnected from new rows of C, D"
    assert running["predicted_end"] < 3 * 1_000_000 + 8 * 1_000_000
    text = ride.engine.explain("q", analyze=True)
    assert "migration by hybmig to ((A B) (C D)) since step 3" in text
    assert "old plan" in text and "new plan" in text
    value = ride.engine.explain("q", analyze=True, format="json")
    assert value["migration"] == running
    assert pa.array(list(value["states"].values())).type == pa.int64()


def test_an_engine_saved_amid_a_migration_goes_on(tmp_path: object) -> None:
    for strategy in LASTING:
        still = Ride("(((A B) C) D)").go(20)
        ride = Ride("(((A B) C) D)").go(6, {3: ("(A (B (C D)))", strategy, {})})
        ride.engine.save(f"{tmp_path}/{strategy}")
        ride.engine = ms.Engine.load(f"{tmp_path}/{strategy}")
        assert ride.engine.migration("q") is not None
        ride.go(14)
        assert ride.found == still.found
        assert [e.plan for e in ride.events(MigrationEnded)] == ["(A (B (C D)))"]
