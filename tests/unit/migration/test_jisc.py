"""JISC: states completed just before they are probed, key by key (JISC §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest

import midstream as ms
from midstream.migration.just_in_time.attempts import Attempts, take_over
from midstream.migration.just_in_time.completion import Completion
from midstream.migration.just_in_time.distinct_keys import KeyColumn, among
from midstream.migration.just_in_time.probed_state import ProbedState
from midstream.model.events import MigrationEnded, MigrationProgressed
from midstream.state.keys import Codes
from tests.unit.building import engine, table
from tests.unit.migration.rides import Ride, rows_of

Moves = dict[int, tuple[str, str]]
Rows = Sequence[tuple[str, int]]


def sql(streams: str) -> str:
    keys = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(streams))
    return f"SELECT {', '.join(f'{s}.v AS {s.lower()}' for s in streams)} FROM {', '.join(streams)} WHERE {keys}"


def single(plan: str, rows: Rows, moves: Moves, streams: str = "ABC") -> tuple[Any, Counter[tuple[Any, ...]]]:
    """One row a step, (stream, key), its number its value; a move is (plan, strategy) before its step."""
    made = engine(streams)
    made.add_query("q", f"{sql(streams)} WINDOW 1000 SECONDS", plan=plan)
    found: Counter[tuple[Any, ...]] = Counter()
    for number, (stream, key) in enumerate(rows):
        if number in moves:
            made.migrate("q", *moves[number])
        found += rows_of(made.push({stream: table([number], k=[key], v=[number])})["q"])
    return made, found


def present_is_complete(self: Completion, probed: ProbedState, column: KeyColumn, codes: Codes) -> Codes:
    """Procedure 1, line 1: what finds a match in the state is not completed."""
    held = [part.codes for part in self.lane.join(probed.spec).old if part.codes is not None]
    left = codes[among(codes, self.left(probed, column).codes)]
    return left[~among(left, np.unique(np.concatenate([np.zeros(0, np.int64), *held])))]


def met_is_attempted(self: Completion, probed: ProbedState, column: KeyColumn, codes: Codes) -> Codes:
    """Definition 2: a key is fresh only once, whatever the row that brought it has probed."""
    met = [np.zeros(0, np.int64)]
    for unit in ("B", "C"):
        base = self.lane.base(self.rows[unit])
        for segment in base.old:
            late = segment.first + np.arange(segment.batch.num_rows) >= self.start[unit]
            met.append(segment.batch.column("k").to_numpy()[late])
    left = codes[among(codes, self.left(probed, column).codes)]
    return left[~among(left, np.unique(np.concatenate(met)))]


class TestTheRule:
    """Attempts are kept for each state; by the paper's own tests results are lost."""

    rows: ClassVar[Rows] = [("B", 7), ("C", 7), ("B", 7), ("A", 7)]
    moves: ClassVar[Moves] = {2: ("(A (B C))", "jisc")}

    def test_a_key_that_is_present_need_not_be_complete(self) -> None:
        made, found = single("((A B) C)", self.rows, self.moves)
        assert found == Counter({(3, 0, 1): 1, (3, 2, 1): 1}) == single("((A B) C)", self.rows, {})[1]
        (ended,) = [e for e in made.events if isinstance(e, MigrationEnded)]
        assert (ended.step, ended.comparisons) == (3, 1)

    @pytest.mark.parametrize("rule", [present_is_complete, met_is_attempted])
    def test_the_papers_rule_loses_a_result(self, rule: Callable[..., Codes], monkeypatch: pytest.MonkeyPatch) -> None:
        """The new B meets complete states only and leaves its pair in BC; A finds it there and nothing older."""
        monkeypatch.setattr(Completion, "fresh", rule)
        assert single("((A B) C)", self.rows, self.moves)[1] == Counter({(3, 2, 1): 1})

    def test_children_that_are_complete_do_not_make_their_parent_so(self) -> None:
        """§4.3, case 3: AB and CD are completed by each other's rows, ABCD is not by that."""
        rows = [("E", 7), *((s, 7) for s in "ABCD"), ("A", 7), ("C", 7), ("E", 7)]
        moves: Moves = {5: ("(((A B) (C D)) E)", "jisc")}
        assert single("((((E A) B) C) D)", rows, moves, "ABCDE")[1] == single("((((E A) B) C) D)", rows, {}, "ABCDE")[1]

    def test_only_keys_that_arrive_are_completed(self) -> None:
        old = [(s, key) for s in "BC" for key in range(5)]
        made, found = single("((A B) C)", [*old, ("A", 3), ("A", 3), ("A", 9)], {10: ("(A (B C))", "jisc")})
        assert found == Counter({(10, 3, 8): 1, (11, 3, 8): 1})
        steps = [e for e in made.events if isinstance(e, MigrationProgressed)]
        assert [e.phase for e in steps] == ["1 of 1 states incomplete, 4 keys left; goes on with the next rows"] * 3
        assert [e.detail["comparisons"] for e in steps] == [1, 1, 1]


class TestOverlap:
    """§4.5: a state that comes incomplete out of one migration and into the next."""

    old: ClassVar[Rows] = [(s, 7) for s in "ABCD"]
    plans = ("(((A B) C) D)", "(A ((B C) D))", "(((B C) A) D)")
    moves: ClassVar[Moves] = {4: (plans[1], "jisc"), 5: (plans[2], "jisc")}

    @pytest.mark.parametrize("last", ["A", "D", "AD", "DA", "BAD", "CDA"])
    def test_it_keeps_its_start_and_its_attempted_keys(self, last: str) -> None:
        rows = [*self.old, ("B", 7), *((s, 7) for s in last)]
        _, found = single(self.plans[0], rows, self.moves, "ABCD")
        assert found == single(self.plans[0], rows, {}, "ABCD")[1]
        assert found

    def test_with_the_new_start_a_result_would_double(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def younger(*arguments: Any) -> Attempts | None:
            taken = take_over(*arguments)
            return taken and replace(taken, start=None)

        monkeypatch.setattr("midstream.migration.jisc.take_over", younger)
        rows = [*self.old, ("B", 7), ("A", 7)]
        _, found = single(self.plans[0], rows, self.moves, "ABCD")
        assert max(found.values()) == 2

    def test_what_was_attempted_is_not_attempted_again(self) -> None:
        """The second migration finds BC complete for the key that D brought."""
        rows = [*self.old, ("D", 7), ("A", 7)]
        made, found = single(self.plans[0], rows, self.moves, "ABCD")
        assert found == single(self.plans[0], rows, {}, "ABCD")[1]
        (ended,) = [e for e in made.events if isinstance(e, MigrationEnded)]
        last = [e for e in made.events if isinstance(e, MigrationProgressed)][-1]
        assert (ended.plan, ended.comparisons) == (self.plans[1], 1)
        assert (last.step, last.phase) == (5, "1 of 2 states incomplete, 1 key left; goes on with the next rows")
        assert last.detail["comparisons"] == 0


@pytest.mark.parametrize("options", [{}, {"decompose": False}, {"background": 40}])
@pytest.mark.parametrize("windows", ["", "A [RANGE 8 SECONDS], B [ROWS 12], C [RANGE 3 SECONDS], D [RANGE 8 SECONDS]"])
@pytest.mark.parametrize("levels", [False, True])
def test_migrations_overlap_and_lead_back(options: dict[str, Any], windows: str, levels: bool) -> None:
    moves: dict[int, tuple[str, str, dict[str, Any]]] = {
        4: ("(A (B (C D)))", "jisc", options),
        6: ("((A C) (B D))", "jisc", options),
        7: ("(((A C) B) D)", "jisc", options),
        8: ("((A B) (C D))", "hybmig", {}),
        9: ("(((A B) C) D)", "jisc", options),
        10: ("((A C) (B D))", "moving_state", {}),
        11: ("(B (A (C D)))", "jisc", options),
    }
    still = Ride("(((A B) C) D)", windows=windows, levels=levels, keys=30, rows=9).go(24)
    ride = Ride("(((A B) C) D)", windows=windows, levels=levels, keys=30, rows=9).go(24, moves)
    assert ride.found == still.found
    assert still.total
    assert len(ride.events(MigrationEnded)) == len(moves)
    assert {box["box"] for lane in ride.engine.manifest.lane_states.values() for box in lane.boxes.values()} == {"plan"}


@pytest.mark.parametrize("plan", ["(A (B (C D)))", "((A C) (B D))", "(((D C) B) A)"])
def test_saved_and_loaded_amid_a_migration(plan: str, tmp_path: object) -> None:
    still = Ride("(((A B) C) D)", keys=40).go(16)
    ride = Ride("(((A B) C) D)", keys=40).go(6, {5: (plan, "jisc", {})})
    for number in range(3):
        assert ride.engine.migration("q") is not None
        ride.engine.save(f"{tmp_path}/{number}")
        ride.engine = ms.Engine.load(f"{tmp_path}/{number}")
        ride.go(1)
    ride.go(7)
    assert ride.found == still.found


def test_a_lost_table_of_attempts_is_begun_again() -> None:
    still = Ride("(((A B) C) D)", keys=40).go(16)
    ride = Ride("(((A B) C) D)", keys=40).go(6, {4: ("(A (B (C D)))", "jisc", {})})
    (lane,) = ride.engine.manifest.lane_states.values()
    tables = [listing for name, listing in lane.states.items() if name.endswith(".table")]
    assert len(tables) == 2
    for listing in tables:
        for ref in listing.chunks:
            del ride.engine._store._chunks[ref.name]
    assert ride.go(10).found == still.found


class TestBackground:
    """Further keys by a budget of comparisons."""

    def test_it_ends_the_migration_sooner(self) -> None:
        steps = []
        for background in (0, 20, 10_000):
            ride = Ride("(((A B) C) D)", keys=40, rows=20)
            ride.go(20, {10: ("(A (B (C D)))", "jisc", {"background": background})})
            (ended,) = ride.events(MigrationEnded)
            steps.append(ended.detail["steps"])
        assert steps[0] > steps[1] > steps[2] == 1

    def test_the_newest_rows_come_first_and_the_budget_holds(self) -> None:
        old = [(s, key) for key in range(8) for s in "BC"]
        made = engine("ABC")
        made.add_query("q", f"{sql('ABC')} WINDOW 1000 SECONDS", plan="((A B) C)")
        for number, (stream, key) in enumerate(old):
            made.push({stream: table([number], k=[key], v=[number])})
        made.migrate("q", "(A (B C))", "jisc", background=3)
        made.push({})
        assert made.migration("q")["comparisons"] == 3
        assert made.migration("q")["phase"] == "1 of 1 states incomplete, 5 keys left; goes on with the next rows"
        answer = made.push({"A": table([20] * 4, k=[7, 6, 5, 4], v=[20] * 4)})["q"]
        assert answer.num_rows == 4
        # The next three of the background were 2, 3 and 4; nothing but those that arrived was left.
        assert made.migration("q")["phase"] == "1 of 1 states incomplete, 2 keys left; goes on with the next rows"


class TestStates:
    """Which states are incomplete (Definition 1), and when they are complete (§4.3)."""

    def test_windows_slide_through_incomplete_states(self) -> None:
        """§2.2, scenario 3: an old row leaves its window while BC lacks its pair."""
        made = engine("ABC")
        windows = "A [RANGE 50 SECONDS], B [RANGE 5 SECONDS], C [RANGE 50 SECONDS]"
        made.add_query("q", sql("ABC").replace("A, B, C", windows), plan="((A B) C)")
        made.push({"B": table([1], k=[7], v=[1]), "C": table([1], k=[7], v=[1])})
        made.migrate("q", "(A (B C))", "jisc")
        assert made.push({s: table([4], k=[8], v=[2]) for s in "ABC"})["q"].num_rows == 1
        assert made.push({"A": table([7], k=[7], v=[3])})["q"].num_rows == 0

    def test_it_is_over_when_no_key_is_left(self) -> None:
        """Old keys of B and C have no partner: the counter of BC is zero at once."""
        made, _ = single("((A B) C)", [("B", 1), ("C", 2), ("A", 3)], {2: ("(A (B C))", "jisc")})
        (ended,) = [e for e in made.events if isinstance(e, MigrationEnded)]
        assert (ended.step, ended.comparisons) == (2, 0)

    def test_keys_go_as_their_rows_do(self) -> None:
        ride = Ride("(((A B) C) D)", keys=40, seconds=4)
        ride.go(7, {4: ("(A (B (C D)))", "jisc", {})})
        left = [int(e.phase.split(", ")[1].split()[0]) for e in ride.events(MigrationProgressed)]
        assert left == sorted(left, reverse=True)
        ride.go(4)
        (ended,) = ride.events(MigrationEnded)
        assert ended.step <= 9

    def test_a_whole_state_of_another_query_is_complete(self) -> None:
        ride = Ride("(((A B) C) D)", keys=40).go(0)
        ride.engine.add_query("r", ride.sql, plan="((A B) (C D))")
        ride.go(8, {6: ("(A (B (C D)))", "jisc", {})})
        (first, *_) = ride.events(MigrationProgressed)
        assert first.phase.startswith("1 of 2 states incomplete")

    def test_without_decomposition_states_that_both_plans_have_are_complete(self) -> None:
        ride = Ride("(((A B) C) D)", keys=40)
        ride.go(8, {6: ("((A B) (C D))", "jisc", {"decompose": False})})
        (first, *_) = ride.events(MigrationProgressed)
        assert first.phase.startswith("1 of 2 states incomplete")

    def test_a_state_that_lacks_rows_without_a_key_serves_no_other_index(self) -> None:
        """AB is complete for every A.k; query r needs it by B.s, also where A.k is NULL."""
        made = engine("ABCD")
        made.add_query("q", "SELECT A.v FROM A, B, C WHERE A.j = B.j AND A.k = C.k WINDOW 9 SECONDS", plan="((A C) B)")
        made.add_query("r", "SELECT A.v FROM A, B, D WHERE A.j = B.j AND B.s = D.s WINDOW 9 SECONDS", plan="((B D) A)")
        made.push({"A": table([1, 1], k=[None, 5], j=[1, 1], v=[1, 2]), "B": table([1], j=[1], s=["x"])})
        made.migrate("q", "((A B) C)", "jisc")
        assert made.push({"C": table([2], k=[5])})["q"].num_rows == 1
        assert made.migration("q") is None
        made.migrate("q", "((A C) B)", "moving_state")  # With this, AB is at hand when r begins.
        made.migrate("r", "((A B) D)", "moving_state")
        assert sorted(made.push({"D": table([3], s=["x"])})["r"].column(0).to_pylist()) == [1, 2]

    @pytest.mark.parametrize("plan", ["[A: B C D | B: A C D | C: A B D | D: A B C]", "eddy(A B C D)"])
    def test_plans_that_lack_nothing_take_over_at_once(self, plan: str) -> None:
        ride = Ride("(((A B) C) D)").go(12, {6: (plan, "jisc", {})})
        assert ride.found == Ride("(((A B) C) D)").go(12).found
        assert [(e.step, e.comparisons) for e in ride.events(MigrationEnded)] == [(6, 0)]


@pytest.mark.parametrize(
    "condition",
    [
        "A.k = B.k AND B.k = C.k AND C.j < D.j",
        "ABS(A.k - B.k) <= 1 AND B.j = C.j AND ABS(C.k - D.k) <= 1",
        "A.k = B.k AND B.j = C.j AND A.j = D.j AND B.k = D.k",
        "A.s = B.s AND B.k = C.k AND B.j = D.k AND A.s <> D.s",
        "A.k <> B.k AND B.k = C.k AND C.j = D.j",
    ],
)
@pytest.mark.parametrize("nulls", [False, True])
def test_keys_of_many_kinds(condition: str, nulls: bool) -> None:
    """Joins by hash on several columns, by band and by scan; at the latter a probe completes the whole state."""
    plans = ["(((A B) C) D)", "(A (B (C D)))", "((A C) (B D))", "(((D B) C) A)", "((A B) (D C))"]

    def ride(moves: dict[int, str]) -> tuple[list[Counter[tuple[Any, ...]]], int]:
        made = engine("ABCD")
        select = ", ".join(f"{s}.v AS {s.lower()}" for s in "ABCD")
        made.add_query("q", f"SELECT {select} FROM A, B, C, D WHERE {condition} WINDOW 6 SECONDS", plan=plans[0])
        random, found = np.random.default_rng(3), []
        for number in range(16):
            if number in moves:
                made.migrate("q", moves[number], "jisc")
            step = {}
            for stream in "ABCD":
                drawn = {c: random.integers(0, 7, 2).tolist() for c in "kjsv"}
                drawn["s"] = [str(n) for n in drawn["s"]]
                if nulls:
                    drawn = {c: [w if random.random() > 0.2 else None for w in words] for c, words in drawn.items()}
                step[stream] = table([number, number + 0.5], **drawn)
            found.append(rows_of(made.push(step)["q"]))
        return found, len([e for e in made.events if isinstance(e, MigrationProgressed)])

    found, progressed = ride({4: plans[1], 6: plans[2], 7: plans[3], 11: plans[4]})
    assert found == ride({})[0]
    assert sum(found, Counter())
    assert progressed


def test_a_state_is_completed_once_for_all_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stream brings a key of its own; otherwise each join would go down all the way for its key."""
    streams = "ABCDEFGHIJKL"
    asked: Counter[str] = Counter()
    missing = Completion._missing

    def counted(self: Completion, probed: ProbedState, *rest: Any) -> Any:
        asked[probed.spec.id] += 1
        return missing(self, probed, *rest)

    monkeypatch.setattr(Completion, "_missing", counted)
    made = engine(streams)
    made.add_query("q", f"{sql(streams)} WINDOW 9 SECONDS", plan=reduce("({} {})".format, streams))
    made.push({s: table([1] * 12, k=list(range(12)), v=[0] * 12) for s in streams})
    made.migrate("q", reduce("({} {})".format, streams[::-1]), "jisc")
    answer = made.push({s: table([2], k=[key], v=[1]) for key, s in enumerate(streams)})["q"]
    assert answer.num_rows == 12
    assert len(asked) == 10
    assert set(asked.values()) == {1}


def test_a_hundred_joins() -> None:
    """Each state is asked once a step for what all joins above it want; nearly all are incomplete."""
    streams = [f"S{number:03}" for number in range(101)]
    arrivals = [("S037", 0), ("S100", 1), ("S000", 2), ("S050", 0), ("S001", 2), ("S099", 9)]

    def left_deep(names: Sequence[str]) -> str:
        return reduce(lambda plan, name: f"({plan} {name})", names)

    made = engine(streams)
    keys = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise(streams))
    sql = f"SELECT S000.v AS v FROM {', '.join(streams)} WHERE {keys} WINDOW 100 SECONDS"
    made.add_query("q", sql, plan=left_deep(streams))
    made.push({s: table([1] * 4, k=[0, 1, 2, 3], v=[0, 1, 2, 3]) for s in streams})
    made.migrate("q", left_deep([streams[-1], *streams[1:-1], streams[0]]), "jisc")
    answers = [made.push({s: table([number], k=[key], v=[number])})["q"] for number, (s, key) in enumerate(arrivals, 2)]
    assert [answer.column("v").to_pylist() for answer in answers] == [[0], [1], [4], [0, 0], [2, 4], []]
    work = [e.detail["comparisons"] for e in made.events if isinstance(e, MigrationProgressed)]
    # Key 0 is completed up to the state that S037 probes, then all the way; keys 1 and 2 as far as they are probed.
    assert work == sorted(work)
    assert work[-1] <= 3 * 99
