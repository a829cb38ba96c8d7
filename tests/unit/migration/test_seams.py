"""Where rooms meet: what only shows when a migration, a plan form and something third come together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import midstream as ms
from midstream.model.events import MigrationBegun
from midstream.model.ids import CounterKey
from tests.unit.building import engine, table


def test_an_aggregate_over_an_eddy_is_rescaled() -> None:
    def run(*, rescaled: bool) -> list[object]:
        made, found = engine("AB"), []
        made.add_query(
            "q",
            "SELECT A.k, COUNT(*) AS n FROM A [RANGE 5 SECONDS], B [RANGE 5 SECONDS] "
            "WHERE A.k = B.k GROUP BY A.k EVERY 1 SECOND",
            plan="eddy(A B)",
        )
        for at in range(4):
            if rescaled and at == 2:
                made.rescale(lanes=2)
            rows = table([float(at), float(at)], k=[1, 2])
            found.append(sorted(map(str, made.push({"A": rows, "B": rows})["q"].to_pylist())))
        return found

    assert run(rescaled=True) == run(rescaled=False)


@pytest.mark.parametrize("objective", ["latency", "work", "memory"])
def test_auto_chooses_where_there_is_one_stream(objective: str) -> None:
    made: ms.Engine = engine("A")
    made.add_query("q", "SELECT COUNT(*) AS n FROM A [RANGE 5 SECONDS] EVERY 1 SECOND")
    made.push({"A": table([1.0], k=[1])})
    made.migrate("q", "[A: ]", strategy="auto", objective=objective)
    made.push({"A": table([2.0], k=[1])})
    assert [event.query for event in made.events if isinstance(event, MigrationBegun)] == ["q"]


@pytest.mark.parametrize("strategy", ["gms", "gpt", "hybmig", "moving_state", "jisc", "ghm"])
def test_a_state_that_another_query_holds_is_inserted_once(strategy: str) -> None:
    made = engine("ABC")
    sql = "SELECT A.v AS a, B.v AS b, C.v AS c FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 3 SECONDS"
    made.add_query("p", sql, plan="((A B) C)")
    made.add_query("q", sql, plan="(A (B C))")
    for at in range(10):
        if at == 3:
            made.migrate("q", "((A B) C)", strategy=strategy)
        made.push({name: table([float(at), float(at)], k=[at % 2, 1]) for name in "ABC"})
        for lane, state in made.manifest.lane_states.items():
            for state_id, listing in state.states.items():
                name = CounterKey(lane.group, state_id.counted)
                counters = made.manifest.operators.get(name)
                if counters is not None:
                    assert counters.inserted - counters.purged == listing.live, (at, name)


@pytest.mark.parametrize("mirror", ["((C D) (A B))", "((D C) (B A))"])
def test_a_mirror_image_of_the_plan_knows_which_states_are_incomplete(mirror: str) -> None:
    """A state over C and D is complete soon, that over A and B is not when C and D come again."""

    def run(moves: dict[int, str]) -> list[int]:
        made, found = engine("ABCD"), []
        where = "A.k = B.k AND C.k = D.k AND B.j = C.j"
        made.add_query("q", f"SELECT A.v AS a FROM A, B, C, D WHERE {where} WINDOW 20 SECONDS", plan="(((A D) B) C)")
        for at in range(10):
            if at in moves:
                made.migrate("q", moves[at], strategy="jisc")
            keys = range(9)
            step = {name: table([at + i / 10 for i in keys], k=[1] * 9, j=list(keys), v=[0.0] * 9) for name in "AB"}
            if not 4 <= at < 9:
                j = [at // 9 + 1] * 2
                step |= {name: table([float(at), at + 0.5], k=[1, 1], j=j, v=[0.0, 0.0]) for name in "CD"}
            found.append(made.push(step)["q"].num_rows)
        return found

    assert run({5: "((A B) (C D))", 8: mirror}) == run({})


@pytest.mark.parametrize(("seed", "budget"), [(2, 100), (3, 60), (3, 100)])
def test_entries_of_one_join_are_filled_apart(seed: int, budget: int) -> None:
    """A join whose two sides were completed in different steps has an entry for each."""

    def run(plan: str | None) -> list[int]:
        chance, made, found = np.random.default_rng(seed), engine("ABCDE"), []
        on = " AND ".join(f"{a}.k = {b}.k" for a, b in pairwise("ABCDE"))
        made.add_query("q", f"SELECT A.v FROM A, B, C, D, E WHERE {on} WINDOW 4 SECONDS", plan="((((E C) B) D) A)")
        for at in range(12):
            if at == 6 and plan:
                made.migrate("q", plan, strategy="hybmig", background=budget)
            step = {}
            for name in "ABCDE":
                keys, _ = chance.integers(0, 4, 5), chance.integers(0, 10**9, 5)
                times = np.sort(chance.integers(at * 10**6, (at + 1) * 10**6, 5)) / 1e6
                step[name] = table(times.tolist(), k=keys.tolist())
            found.append(made.push(step)["q"].num_rows)
        return found

    assert run("(((A B) (C D)) E)") == run(None)


def test_what_the_background_left_out_is_known_to_another_query() -> None:
    """Rows without a `j` are in no index by `j`; a query without `j` must not take its content."""

    def run(*, moved: bool) -> list[int]:
        made, found = engine("ABCD"), []
        made.add_query("p", "SELECT A.v FROM A, B, C WHERE A.k = B.k AND B.j = C.j WINDOW 9 SECONDS", plan="(A (B C))")
        made.add_query("q", "SELECT A.v FROM A, B, D WHERE A.k = B.k AND A.s = D.s WINDOW 9 SECONDS", plan="(B (A D))")
        for at in range(13):
            if at == 6 and moved:
                made.migrate("p", "((A B) C)", strategy="hybmig", background=60)
            if at == 11 and moved:
                made.migrate("p", "(C (A B))", strategy="moving_state")
                made.migrate("q", "((A B) D)", strategy="moving_state")
            alone = at in (4, 5)
            rows = table([at + i / 5 for i in range(5)], k=[7 if alone else i % 3 for i in range(5)],
                         j=[None if alone else i % 2 for i in range(5)], s=list("xyxyx"))  # fmt: skip
            found.append(made.push(dict.fromkeys("ABCD", rows))["q"].num_rows)
        return found

    assert run(moved=True) == run(moved=False)
