"""Each node of a ring has probing orders of its own, by what its own partial results compared (Wang §12.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.node_spread import NodeSpread, RouteWork
from midstream.operators.join_condition import JoinCondition
from midstream.ring.lengthening import route_load
from midstream.step.spreading import node_orders
from midstream.step.spreading.node_orders import best_order
from tests.unit.building import SECOND

BY_AGE = """SELECT A.x AS a, B.k AS b, C.k AS c, D.k AS d FROM A, B, C, D
WHERE A.x * B.x > 55 AND C.x * (C.k - B.k) > 40 AND D.x * (B.k - D.k) > 40 WINDOW 16 SECONDS"""
"""Few rows of C match a young row of B and many of D; with its age it becomes the other way round. `k` is a time."""

BY_SLICE = """SELECT A.x AS a, B.k AS b, C.k AS c, D.k AS d FROM A, B, C, D
WHERE A.x * B.x > 55 AND C.x * (1 + B.c) > 8 AND D.x * (2 - B.c) > 8 WINDOW 16 SECONDS"""
"""Few rows of C match a row of B and many of D for eight seconds, then the other way round: two slices of four."""

C_FIRST, D_FIRST = (f"[A: B {tail} | B: A {tail} | C: B D A | D: B C A]" for tail in ("C D", "D C"))

RINGS = ("psp", "psp_i", "psp_d")


def engine(plan: str, scheme: str | None, names: tuple[str, ...] = ("q",), sql: str = BY_AGE) -> ms.Engine:
    made = ms.Engine(seed=3)
    for name in "ABCD":
        made.create_stream(name, "x DOUBLE, k DOUBLE, c DOUBLE, ts TIMESTAMP", timestamp="ts")
    for name in names:
        made.add_query(name, sql, plan=plan, spread=scheme, nodes=None if scheme is None else 4)
    return made


def rows(step: int, count: int = 4) -> dict[str, pa.Table]:
    rng, found = np.random.default_rng(step), {}
    for name in "ABCD":
        micros = np.sort(rng.integers(step * SECOND, (step + 1) * SECOND, count))
        values = {"x": rng.integers(0, 9, count), "k": micros // SECOND, "c": np.full(count, step // 8 % 2)}
        columns = {name: pa.array(value.astype(np.float64)) for name, value in values.items()}
        found[name] = pa.table({**columns, "ts": pa.array(micros, pa.timestamp("us"))})
    return found


def driven(made: ms.Engine, steps: range, name: str = "q") -> list[list[str]]:
    return [sorted(map(str, made.push(rows(step))[name].to_pylist())) for step in steps]


def spread_of(made: ms.Engine, name: str = "q") -> NodeSpread:
    spread = made.manifest.queries[name].nodes
    assert spread is not None
    return spread


def compared(made: ms.Engine) -> int:
    return sum(one.comparisons for one in spread_of(made).work)


@pytest.mark.parametrize("scheme", RINGS)
def test_nodes_differ_and_compare_less_than_with_the_better_order_for_all(
    scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, work, sql = range(40), {}, BY_SLICE if scheme == "psp_d" else BY_AGE
    plain = driven(engine(C_FIRST, None, sql=sql), steps)
    own = engine(C_FIRST, scheme, sql=sql)
    assert driven(own, steps) == plain
    work["own"] = compared(own)
    orders = spread_of(own).orders["A"]
    assert set(orders) == {("B", "C", "D"), ("B", "D", "C")}, "all nodes have one order"
    monkeypatch.setattr(node_orders, "LEAST_COUNTED", 10**12)
    for plan in (C_FIRST, D_FIRST):
        one = engine(plan, scheme, sql=sql)
        assert driven(one, steps) == plain
        assert not spread_of(one).orders
        work[plan] = compared(one)
    assert work["own"] < 0.9 * min(work[C_FIRST], work[D_FIRST]), work


def test_what_is_counted_by_source_adds_up_to_what_nodes_did() -> None:
    made = engine(C_FIRST, "psp")
    driven(made, range(30))
    spread = spread_of(made)
    assert spread.orders
    assert sum(sum(one.comparisons) for one in spread.routes.values()) == compared(made)
    found = dict[str, int]()
    for label, one in spread.routes.items():
        assert len(one.partials) == len(one.order) - 1
        assert route_load(label, one).load.compared > 0
        found[label] = sum(sum(own.comparisons) for own in spread.found[label])
    assert 0 < sum(found.values()) < compared(made), "what is counted by node begins anew with each look"


def test_an_engine_that_is_loaded_again_goes_on_by_the_same_orders(tmp_path: Path) -> None:
    steps, late = range(30), range(30, 40)
    quiet, saved = engine(C_FIRST, "psp_d"), engine(C_FIRST, "psp_d")
    driven(quiet, steps)
    driven(saved, steps)
    saved.save(tmp_path / "saved")
    loaded = ms.Engine.load(tmp_path / "saved")
    assert spread_of(loaded).orders
    assert driven(loaded, late) == driven(quiet, late)
    assert spread_of(loaded) == spread_of(quiet)


def test_a_plan_of_the_user_takes_the_orders_of_nodes_away_until_it_is_counted() -> None:
    made, plain = engine(C_FIRST, "psp"), engine(C_FIRST, None)
    assert driven(made, range(21)) == driven(plain, range(21))
    made.migrate("q", "[A: C B D | B: A C D | C: B A D | D: B A C]")
    late = range(21, 32)
    first = driven(made, late[:1])
    assert not spread_of(made).orders
    assert first + driven(made, late[1:]) == driven(plain, late)
    assert all(order[0] == "C" for order in spread_of(made).orders.get("A", ()))


def test_queries_that_share_a_ring_have_the_orders_together() -> None:
    made, plain = engine(C_FIRST, "psp", ("p", "q")), engine(C_FIRST, None)
    assert driven(made, range(30)) == driven(plain, range(30))
    assert made.manifest.queries["p"].group == made.manifest.queries["q"].group
    assert spread_of(made).orders == spread_of(made, "p").orders != {}


def test_explain_names_the_orders_of_each_node() -> None:
    made = engine(C_FIRST, "psp")
    driven(made, range(30))
    shown = made.explain("q", format="text")
    assert "A: B D C" in shown
    each = [node["orders"] for node in made.explain("q", format="json")["nodes"]["nodes"]]
    assert [one.get("A") for one in each] == [None, None, ["B", "D", "C"], ["B", "D", "C"]]


def test_with_three_streams_there_is_nothing_to_choose() -> None:
    made = ms.Engine(seed=3)
    for name in "ABC":
        made.create_stream(name, "x DOUBLE, k DOUBLE, c DOUBLE, ts TIMESTAMP", timestamp="ts")
    sql = "SELECT A.x FROM A, B, C WHERE A.x * B.x > 5 AND C.k * C.k > B.k * B.k WINDOW 16 SECONDS"
    made.add_query("q", sql, spread="psp", nodes=4)
    for step in range(5):
        made.push({name: table for name, table in rows(step).items() if name != "D"})
    assert not spread_of(made).found


SCAN = JoinCondition("scan", (), (), None, None, (), ())


def work(c: tuple[int, int, int], d: tuple[int, int, int]) -> RouteWork:
    """Partial results, pairs and matches at C and at D."""
    return RouteWork(("B", "C", "D"), 0, (0, c[1], d[1]), (0, c[2], d[2]), (c[0], d[0]))


def test_the_source_that_leaves_fewer_partial_results_comes_first() -> None:
    present, other = ("B", "C", "D"), ("B", "D", "C")
    better = work((10, 100, 80), (80, 800, 8))
    assert best_order(lambda seen, label: SCAN, "A", present, better) == other
    assert best_order(lambda seen, label: SCAN, "A", other, better) == other
    assert best_order(lambda seen, label: SCAN, "A", present, work((10, 100, 80), (80, 800, 640))) == present
    assert best_order(lambda seen, label: SCAN, "A", present, work((10, 100, 0), (0, 0, 0))) == present
    few = work((100, 100, 80), (800, 800, 80))
    assert best_order(lambda seen, label: SCAN, "A", present, few) == present, "to save a pair does not pay"


def test_a_condition_that_was_not_counted_is_not_tried() -> None:
    """D has its key with C alone: before C it would be compared with every row."""

    def on(seen: Sequence[str], label: str) -> JoinCondition:
        return replace(SCAN, index="hash") if label == "D" and "C" in seen else SCAN

    better = work((10, 100, 80), (80, 800, 8))
    assert best_order(on, "A", ("B", "C", "D"), better) == ("B", "C", "D")
