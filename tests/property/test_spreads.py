"""A join spread over nodes, in every way that is discovered, has the oracle's answers in the steps that make them.

Random joins (equalities of several keys, bands, any condition; ties, NULLs, skew, late rows), beside each other in one
engine, one for each way. In half of the cases they are spread otherwise while they run, by nodes that come and go at
once or as rows run out, by the cost model's lengths of each stream's ring, and by slices of few rows; they go back to
lanes, change their probing orders, of all nodes or each node its own, share with a twin before they leave it, and the
engine dies and is loaded again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import midstream as ms
from midstream.model.events import CommandRefused
from midstream.model.node_spread import NodeSpread
from midstream.ring.spreading import spreadings
from tests.conformance.expected import Expected
from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import QuerySpec
from tests.property.cases import cuts, shapes, twins
from tests.property.drive import Case, start
from tests.property.queries import queries
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200), pytest.mark.usefixtures("lengths_change_often")]

LARGEST = {2: 16, 3: 11, 4: 7}
"""The most rows of a stream, by the number of sources: the oracle is what costs."""

MOST_RESULTS = 400

WAYS = tuple(spreadings())
"""What has cases: each at least as many as `test_every_way_had_cases` says."""

RINGS = ("psp", "psp_i", "psp_d")

SEEN: Counter[str] = Counter()
"""How many cases each way carried, and what they were like."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rows in steps, a join over RANGE windows, and one near to it."""
    count = draw(st.sampled_from((2, 3, 3, 4)))
    query = draw(queries("ABCD"[:count], kinds=("join",), rows_windows=False, least=2, sources=4))
    shape = draw(shapes(count, LARGEST[max(2, len(query.all_sources))]))
    streams, sequence = draw_rows(shape)
    lives = Lifetime("q", query), Lifetime("twin", draw(twins(query)))
    return Case(streams, cut(streams, sequence, draw(cuts())), lives, shape.in_order)


@drawing(250, soak=14)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_answers_are_the_oracle_s(case: Case, seed: int) -> None:
    SEEN["cases"] += 1
    answers = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in answers.values()))
    expected, rng = {name: Expected(answer, len(case.steps)) for name, answer in answers.items()}, Random(seed)
    course = Course(case, rng, changing=rng.random() < 0.5)
    for name, found in course.run().items():
        expected["twin" if name == "twin" else "q"].check(found, in_order=False, label=name)
        if name in WAYS:
            SEEN.update({name: 1, f"{name} found": min(1, answers["q"].table.num_rows)})


class Course:
    """Queries of one text in an engine, each spread in its own way, and what is done to them."""

    def __init__(self, case: Case, rng: Random, *, changing: bool) -> None:
        self.case, self.rng, self.changing = case, rng, changing
        self.spec: QuerySpec = case.queries[0].spec
        self.engine = start(case.streams, lanes=rng.choice((1, 1, 2)), sharing=rng.choice(("auto", "auto", "off")))
        self.outputs: dict[str, list[pa.Table]] = {}

    def run(self) -> dict[str, list[pa.Table]]:
        """The outputs, by query."""
        for name in (*WAYS, *(["lane"] if self.changing else [])):
            self.add(name)
        if self.changing:
            self.engine.add_query("twin", self.case.queries[1].spec.cql())
            self.outputs["twin"] = []
        for number, step in enumerate(self.case.steps):
            if self.changing and number:
                shown = self.engine.report()
                for name in self.outputs:
                    self.change(number, name, shown.query(name).nodes)
                self.disturb(number)
            for name, table in self.engine.push(dict(step)).items():
                self.outputs[name].append(table)
            spreads = [entry.nodes for entry in self.engine.manifest.queries.values() if entry.nodes is not None]
            SEEN["orders of nodes"] += any(spread.orders for spread in spreads)
            SEEN["lengths"] += any(len(set(map(len, spread.rings.values()))) > 1 for spread in spreads)
        assert not [event for event in self.engine.events if isinstance(event, CommandRefused)]
        return self.outputs

    def add(self, name: str) -> None:
        nodes = self.rng.choice((1, 2, 3, 3, 5, 8, *("auto",) * 3))
        note(f"{name} over {nodes} nodes: {self.spec.cql()}")
        try:
            if name in WAYS:
                options = {**self.bound(name), **self.objective(nodes)}
                self.engine.add_query(name, self.spec.cql(), spread=name, nodes=nodes, spread_options=options)
            else:
                self.engine.add_query(name, self.spec.cql())
        except ms.PlanError:
            assert name == "lanes"
            return
        self.outputs[name] = []

    def change(self, number: int, name: str, spread: NodeSpread | None) -> None:
        """Perhaps spread a query otherwise, or give it other probing orders; the twin stays as it is."""
        if name == "twin" or self.rng.random() < 0.4:
            return
        if spread is not None and self.rng.random() < 0.3:
            plan = self.orders()
            self.tried(number, name, ("orders",), lambda: self.engine.migrate(name, plan))
            return
        to = self.rng.choice((*WAYS, "auto", *(() if spread is None else ("off", "off", *[spread.scheme] * 5))))
        nodes = None if to == "off" else self.rng.choice((1, 2, 3, 5, "auto"))
        options: dict[str, Any] = {} if to == "off" else {**self.bound(to), **self.objective(nodes)}
        if spread is not None and to != "off" and self.rng.random() < 0.5:
            options["relocation"] = "passive"
        way = "passively" if options.get("relocation") else "at once"
        resized = [f"ring {way}"] if spread is not None and spread.scheme == to and to in RINGS else []
        self.tried(number, name, (to, way, *resized), lambda: self.engine.spread(name, to, nodes, **options))

    def bound(self, scheme: str) -> dict[str, Any]:
        """Perhaps few rows at most in a slice."""
        bounded = "count_bound" in spreadings()[scheme].options if scheme in WAYS else False
        return (
            {"count_bound": self.rng.choice((1, 2, 5, "auto", "auto"))} if bounded and self.rng.random() < 0.5 else {}
        )

    def objective(self, nodes: int | str | None) -> dict[str, Any]:
        """What the number of nodes is chosen for, where it is left open."""
        return {"objective": self.rng.choice(("latency", "rate"))} if nodes == "auto" else {}

    def tried(self, number: int, name: str, what: tuple[str, ...], do: Callable[[], None]) -> None:
        note(f"step {number}: {name} to {' '.join(what)}")
        try:
            do()
        except (ms.PlanError, ms.StrategyError):
            return  # Lanes without a common key, a master that is not visited first, the plan that it has.
        SEEN.update(f"to {one}" for one in what)

    def orders(self) -> str:
        """A plan of random probing orders."""
        aliases = [source.alias for source in self.spec.all_sources]
        parts = [f"{a}: {' '.join(self.rng.sample([b for b in aliases if b != a], len(aliases) - 1))}" for a in aliases]
        return f"[{' | '.join(parts)}]"

    def disturb(self, number: int) -> None:
        """Perhaps spread the lanes anew, or have the engine die amid the step and be loaded again."""
        if self.rng.random() < 0.2:
            self.engine.rescale(self.rng.choice((1, 2, 3)))
        if self.rng.random() < 0.3:
            note(f"step {number}: loaded")
            with tempfile.TemporaryDirectory(prefix="midstream-test-") as folder:
                self.engine.save(Path(folder) / "saved")
                self.engine.push(dict(self.case.steps[number]))
                self.engine = ms.Engine.load(Path(folder) / "saved")


def wanting(least: float, names: Iterable[str]) -> set[str]:
    return {name for name in names if SEEN[name] < least}


def test_every_way_had_cases() -> None:
    """The test above would be green of ways that refuse everything, and of joins that find nothing."""
    others, asked = [name for name in WAYS if name != "lanes"], SEEN["cases"] * 0.8
    assert wanting(asked, others) == set()
    assert wanting(asked * 0.05, ["lanes"]) == set()
    assert {name for name in WAYS if SEEN[f"{name} found"] < SEEN[name] / 4} == set()
    assert wanting(asked / 8, [f"to {name}" for name in (*others, "auto", "off", "orders")]) == set()
    assert wanting(asked / 8, ["lengths"]) == set()
    assert wanting(asked / 16, ["orders of nodes"]) == set()
    assert wanting(asked / 8, ["to passively", "to at once", "to ring passively", "to ring at once"]) == set()
