"""Routing: what an eddy learns, how it chooses, and that a replay chooses alike."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.commands.add_query import AddQuery
from midstream.model.manifest import Manifest
from midstream.operators.eddy.cacq_eddy import HALF_LIFE, POLICIES, Lottery, Rank, Sightings
from midstream.plan.tree import Eddy
from midstream.step.fold import step
from midstream.storage import files as store_files
from midstream.storage.files import FileStore
from tests.unit.building import engine, schemas, table

STAR = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND A.j = C.j WINDOW 1000 SECONDS"
APART = "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND C.k = D.k WINDOW 1000 SECONDS"


def sightings(**seen: tuple[int, int, int]) -> Sightings:
    found = Sightings.load(tuple(seen), None, 0)
    for place, numbers in enumerate(seen.values()):
        found.saw(place, *numbers)
    return found


def drawn(seen: Sightings, seed: int = 1) -> Counter[int]:
    lottery = Lottery(seen, (seed,))
    return Counter(lottery.choose([0, 2]) for _ in range(1000))


def test_the_notation_knows_the_policies() -> None:
    assert tuple(POLICIES) == Eddy.policies


def test_the_lottery_prefers_who_consumes_more_than_it_produces() -> None:
    assert drawn(sightings(A=(0, 0, 0), B=(0, 0, 0), C=(0, 0, 0)))[0] in range(400, 600)
    many = drawn(sightings(A=(99, 0, 0), B=(9999, 0, 0), C=(0, 0, 0)))
    assert many[0] in range(970, 1000), "100 tickets against 1"
    assert many[2], "who has none is heard at times"
    assert drawn(sightings(A=(99, 9999, 0), B=(0, 0, 0), C=(0, 0, 0)))[0] in range(400, 600), "no debts"


def test_the_lottery_is_drawn_by_its_seed() -> None:
    seen = sightings(A=(0, 0, 0), B=(0, 0, 0), C=(0, 0, 0))
    assert drawn(seen, 1) == drawn(seen, 1) != drawn(seen, 2)


def test_the_rank_weighs_selectivity_by_cost() -> None:
    seen = sightings(A=(10, 5, 0), B=(10, 5, 90), C=(10, 20, 20), D=(10, 20, 990))
    # (0.5 - 1) / 1, (0.5 - 1) / 10, (2 - 1) / 3, (2 - 1) / 100: cheap and selective first, costly and fruitful last.
    assert Rank(seen, (1,)).choose([0, 1, 2, 3]) == 0
    assert Rank(seen, (1,)).choose([1, 2, 3]) == 1
    assert Rank(seen, (1,)).choose([2, 3]) == 3
    assert Rank(sightings(A=(10, 1, 9), B=(0, 0, 0)), (1,)).choose([0, 1]) == 1, "the unknown is tried"


def test_what_was_seen_fades_with_the_rows_that_arrive() -> None:
    seen = sightings(A=(8, 4, 2), B=(0, 0, 0))
    again = Sightings.load(("A", "B"), seen.to_table(), HALF_LIFE)
    assert (again.consumed[0], again.produced[0], again.comparisons[0]) == (4.0, 2.0, 1.0)
    assert not Sightings.load(("A", "C"), seen.to_table(), 0).consumed.any(), "of other SteMs it says nothing"


def hops(made: Any) -> list[int]:
    """Hops and comparisons so far."""
    query = made.metrics()["queries"]["q"]
    return [query["hops"], query["comparisons"]]


def test_each_row_of_each_visit_is_a_hop() -> None:
    made = engine("AB")
    made.add_query("q", "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 9 SECONDS", plan="eddy(A B)")
    made.push({"A": table([0, 0], k=[1, 2]), "B": table([0], k=[1])})
    assert hops(made) == [2 + 1, 1]
    star = engine("ABC")
    star.add_query("q", STAR, plan="eddy(A B C)")
    star.push({"A": table([0], k=[1], j=[7])})
    assert hops(star) == [1, 0], "the first visit finds nothing"
    star.push({"B": table([1, 1], k=[1, 2])})
    assert hops(star) == [1 + 2 + 1, 1], "a row of B reaches C by way of A only"
    star.push({"C": table([2], j=[7])})
    assert hops(star) == [4 + 2, 3]


def learned(plan: str, steps: int = 12) -> list[int]:
    """The hops of each step in which a row of A may visit B, where it finds nothing, or C, where it finds 5 rows."""
    made = engine("ABC")
    made.add_query("q", STAR, plan=plan)
    made.push({"B": table([0] * 5, k=range(5)), "C": table([0] * 5, j=[1] * 5)})
    found = []
    for time in range(steps):
        before = hops(made)[0]
        made.push({"A": table([time + 1] * 100, k=[9] * 100, j=[1] * 100)})
        found.append(hops(made)[0] - before)
    return found


def test_the_rank_learns_from_one_try_each() -> None:
    # B is tried first, for it stands first; it lets nothing pass, and that is the best there is.
    assert learned("eddy:rank(A B C)") == [100] * 12


def test_the_lottery_learns() -> None:
    steps = learned("eddy(A B C)", 40)
    assert set(steps) <= {100, 600}
    assert steps[20:].count(100) > 15


@pytest.mark.parametrize("policy", Eddy.policies)
def test_cross_products_come_last(policy: str) -> None:
    made = engine("ABCD")
    made.add_query("q", APART, plan=f"eddy:{policy}(A B C D)")
    for name in "BCD":
        made.push({name: table([0] * 10, k=range(10))})
    before = hops(made)[0]
    made.push({"A": table([1] * 100, k=[99] * 100)})
    assert hops(made)[0] - before == 100, "to B, which no row passes"


def test_what_was_seen_survives_a_restart(tmp_path: Path) -> None:
    made = engine("ABC")
    made.add_query("q", STAR, plan="eddy(A B C)")
    rows = {name: table([0] * 4, k=range(4), j=[0, 0, 1, 1]) for name in "ABC"}
    for _ in range(5):
        made.push(rows)
    made.save(tmp_path / "saved")
    again = ms.Engine.load(tmp_path / "saved")
    for _ in range(5):
        assert again.push(rows)["q"].num_rows == made.push(rows)["q"].num_rows
        assert hops(again) == hops(made), "the same draws from the same sightings"
    (lane,) = made.manifest.lane_states.values()
    assert [id for id in lane.states if id.endswith(".table")]
    made.migrate("q", "((A B) C)", "moving_state")
    made.push()
    (lane,) = made.manifest.lane_states.values()
    assert not [id for id in lane.states if id.endswith(".table")]


def test_one_policy_learns_from_the_other() -> None:
    made = engine("ABC")
    made.add_query("q", STAR, plan="eddy(A B C)")
    made.push({"B": table([0] * 5, k=[9] * 5), "C": table([0] * 5, j=range(5))})
    made.push({"A": table([1], k=[9], j=[0])})  # meets both
    for time in range(20):
        made.push({"A": table([time + 2] * 10, k=[9] * 10, j=[99] * 10)})
    made.migrate("q", "eddy:rank(A B C)")
    before = hops(made)[0]
    made.push({"A": table([30] * 10, k=[9] * 10, j=[99] * 10)})
    assert hops(made)[0] - before == 10, "C lets nothing pass: a rank without sightings would try B first"


@pytest.mark.parametrize("how", ["lost", "damaged"])
def test_without_what_was_seen_the_answers_are_the_same(how: str, tmp_path: Path) -> None:
    store, manifest = FileStore(tmp_path), Manifest(streams=schemas("ABC"))
    rows = {name: table([0] * 4, k=range(4), j=[0, 0, 1, 1]) for name in "ABC"}
    manifest = step(manifest, rows, [AddQuery("q", STAR, "eddy(A B C)")], store).manifest
    ((name, lane),) = manifest.lane_states.items()
    (seen,) = [id for id in lane.states if id.endswith(".table")]
    (ref,) = lane.states[seen].chunks
    wanted = step(manifest, rows, [], FileStore(tmp_path)).results["q"].num_rows
    if how == "lost":
        left = {id: listing for id, listing in lane.states.items() if id != seen}
        manifest = replace(manifest, lane_states={name: replace(lane, states=left)})
    else:
        file = tmp_path / f"{ref.name}.arrow"
        store_files.forget_opened([str(file)])
        file.write_bytes(file.read_bytes()[:-8])
    assert step(manifest, rows, [], store).results["q"].num_rows == wanted > 0
