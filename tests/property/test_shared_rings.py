"""Queries that share a ring have the oracle's answers in the steps that make them, each from its own start.

Random joins, as those of `test_spreads`; beside each up to three more with other windows, selections and select lists,
which come, go, are spread otherwise and change the probing orders of all, by the cost model's lengths of each stream's
ring, while the engine dies and is loaded again.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import midstream as ms
from midstream.model.events import CommandRefused
from midstream.ring.spreading import spreadings
from tests.conformance.expected import Expected
from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import Condition, Item, QuerySpec
from tests.property.cases import cuts, shapes
from tests.property.drive import Case, start
from tests.property.queries import queries
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200), pytest.mark.usefixtures("lengths_change_often")]

LARGEST = {2: 16, 3: 11, 4: 7}
MOST_RESULTS = 400

WAYS = tuple(name for name, one in spreadings().items() if "segment" not in one.options)
"""Those that can be shared."""

RINGS = ("psp", "psp_i", "psp_d")
"""Those with lengths of their own for each stream."""

SEEN: Counter[str] = Counter()


def near(spec: QuerySpec, rng: Random) -> QuerySpec:
    """The same join with other windows, selections and select list."""
    scale = rng.choice((0, 1, 2, 2, 4))

    def size(window: int | None) -> int | None:
        return None if window is None else window * scale // 2

    sources = tuple(replace(source, range=size(source.range)) for source in spec.sources)
    where = tuple(one for one in spec.where if len(one.aliases) > 1 or rng.random() < 0.5)
    for source in spec.sources:
        if rng.random() < 0.4:
            where = (*where, Condition(f"{source.alias}.k >= {rng.randrange(3)}", (source.alias,)))
    select = spec.select if rng.random() < 0.5 else tuple(
        Item(f"{source.alias}.u", f"u{number}") for number, source in enumerate(spec.sources))  # fmt: skip
    return replace(spec, sources=sources, window=size(spec.window), where=where, select=select)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rows in steps, and queries of one join that come and go."""
    count = draw(st.sampled_from((2, 3, 3, 4)))
    spec = draw(queries("ABCD"[:count], kinds=("join",), rows_windows=False, least=2, sources=4))
    shape, rng = draw(shapes(count, LARGEST[max(2, len(spec.all_sources))])), Random(draw(st.integers(0, 2**32)))
    if rng.random() < 0.6:  # Rows of few keys meet.
        shape = replace(shape, keys=min(2, shape.keys), nulls=0.05)
    streams, sequence = draw_rows(shape)
    steps = cut(streams, sequence, draw(cuts()))
    lives = []
    for number in range(rng.choice((2, 3, 4))):
        since = rng.choice((0, rng.randrange(len(steps))))
        until = rng.choice((None, rng.randrange(since + 1, len(steps) + 1)))
        lives.append(Lifetime(f"q{number}", near(spec, rng), since, until))
    return Case(streams, steps, tuple(lives), shape.in_order)


@drawing(150, soak=20)
@given(case=cases(), way=st.sampled_from((*WAYS, *RINGS)), seed=st.integers(0, 2**32))
def test_answers_are_the_oracle_s(case: Case, way: str, seed: int) -> None:
    SEEN["cases"] += 1
    answers = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in answers.values()))
    for life in case.queries:
        note(f"{life.name} ({life.since}..{life.until}): {life.spec.cql()}")
    outputs = Course(case, way, Random(seed)).run()
    for life in case.queries:
        found, late = outputs[life.name], life.since
        expected = Expected(answers[life.name], late + len(found))
        expected.check(found, in_order=False, label=life.name)


class Course:
    """The queries of a case in an engine, spread alike, and what is done to them."""

    def __init__(self, case: Case, way: str, rng: Random) -> None:
        self.case, self.way, self.rng = case, way, rng
        self.nodes = rng.choice((1, 2, 3, 5, *("auto",) * 8))
        bounded = "count_bound" in spreadings()[way].options and rng.random() < 0.5
        self.options = {"count_bound": rng.choice((2, "auto", "auto"))} if bounded else {}
        self.engine = start(case.streams)
        self.outputs: dict[str, list[pa.Table]] = {life.name: [] for life in case.queries}
        note(f"{self.way} over {self.nodes} nodes, {self.options}")

    def run(self) -> dict[str, list[pa.Table]]:
        """The outputs, by query."""
        for number, step in enumerate(self.case.steps):
            for life in self.case.queries:
                if life.until == number:
                    self.engine.drop_query(life.name)
                if life.since == number:
                    self.add(life)
            for life in self.case.queries:
                if life.since < number and life.runs(number):
                    self.change(number, life)
            if number and self.rng.random() < 0.3:
                note(f"step {number}: loaded")
                with tempfile.TemporaryDirectory(prefix="midstream-test-") as folder:
                    self.engine.save(Path(folder) / "saved")
                    self.engine.push(dict(step))
                    self.engine = ms.Engine.load(Path(folder) / "saved")
            for name, table in self.engine.push(dict(step)).items():
                self.outputs[name].append(table)
            self.count()
        assert not [event for event in self.engine.events if isinstance(event, CommandRefused)]
        return self.outputs

    def add(self, life: Lifetime) -> None:
        try:
            self.engine.add_query(
                life.name, life.spec.cql(), spread=self.way, nodes=self.nodes, spread_options=self.options
            )
        except ms.PlanError:
            assert self.way == "lanes"
            self.way = "psp_d"
            self.add(life)

    def change(self, number: int, life: Lifetime) -> None:
        """Perhaps give the ring of a query other probing orders, or spread the query otherwise."""
        drawn = self.rng.random()
        if drawn < 0.2:
            aliases = [source.alias for source in life.spec.all_sources]
            orders = [f"{a}: {' '.join(self.rng.sample([b for b in aliases if b != a], len(aliases) - 1))}"
                      for a in aliases]  # fmt: skip
            plan = f"[{' | '.join(orders)}]"
            note(f"step {number}: {life.name} to {plan}")
            try:
                self.engine.migrate(life.name, plan)
            except (ms.PlanError, ms.StrategyError):
                return  # The plan that it has, or one of a query that is in lanes.
            SEEN["orders"] += 1
        elif drawn < 0.35:
            to = self.rng.choice(("psp", "psp_d", "one_lane", "off"))
            note(f"step {number}: {life.name} spread by {to}")
            if to != "off" or self.engine.report().query(life.name).nodes is not None:
                self.engine.spread(life.name, to, None if to == "off" else 2)
                SEEN["left"] += 1

    def count(self) -> None:
        """What rings there are."""
        entries = self.engine.manifest.queries.values()
        groups = Counter(entry.group for entry in entries if entry.nodes is not None)
        sharing = max(groups.values(), default=0)
        if sharing > 1:
            SEEN["shared"] += 1
            SEEN[f"shared {self.way}"] += 1
            SEEN["bounded"] += bool(self.options)
            most = groups.most_common(1)[0][0]
            ring = next(entry.nodes for entry in entries if entry.group == most)
            SEEN["lengths"] += ring is not None and len(set(map(len, ring.rings.values()))) > 1
            SEEN["found"] += any(outputs[-1].num_rows for outputs in self.outputs.values() if outputs)


def test_rings_were_shared() -> None:
    """The test above would be green of rings that no query shares."""
    cases = SEEN["cases"]
    assert SEEN["shared"] > cases and SEEN["found"] > cases / 3, SEEN
    assert SEEN["orders"] > cases / 5 and SEEN["left"] > cases / 5, SEEN
    assert SEEN["bounded"] > cases / 5, SEEN
    if cases > 100:
        assert SEEN["lengths"], SEEN
        assert {name for name in WAYS if name != "lanes" and not SEEN[f"shared {name}"]} == set(), SEEN
