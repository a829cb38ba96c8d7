"""A join spread over nodes, in every way that is discovered, has the oracle's answers in the steps that make them.

Random joins (equalities of several keys, bands, any condition; ties, NULLs, skew, late rows), beside each other in one
engine, one for each way to spread them.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, assume, given, note, settings
from hypothesis import strategies as st

import midstream as ms
from midstream.ring.discovery import spreadings
from tests.conformance.expected import Expected
from tests.oracle.arrival import Lifetime
from tests.property.cases import cuts, shapes
from tests.property.drive import Case, start
from tests.property.queries import queries
from tests.property.rows import cut, draw_rows

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

PROFILE = os.environ.get("MIDSTREAM_PROFILE", "test")
CASES = {"test": 60, "soak": 3000, "quick": 10}[PROFILE]

LARGEST = {2: 16, 3: 11, 4: 7}
"""The most rows of a stream, by the number of sources: the oracle is what costs."""

MOST_RESULTS = 400

WAYS = tuple(spreadings())
"""What has cases: each at least as many as `test_every_way_had_cases` says."""

SEEN: Counter[str] = Counter()
"""How many cases each way carried, and what they were like."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Rows in steps, and a join over RANGE windows."""
    count = draw(st.sampled_from((2, 3, 3, 4)))
    query = draw(queries("ABCD"[:count], kinds=("join",), rows_windows=False, least=2, sources=4))
    shape = draw(shapes(count, LARGEST[max(2, len(query.all_sources))]))
    streams, sequence = draw_rows(shape)
    return Case(streams, cut(streams, sequence, draw(cuts())), (Lifetime("q", query),), shape.in_order)


@settings(
    max_examples=CASES,
    database=None,
    deadline=None,
    derandomize=PROFILE != "soak",
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(case=cases(), seed=st.integers(0, 2**32))
def test_answers_are_the_oracle_s(case: Case, seed: int) -> None:
    answer = case.expected()["q"]
    assume(answer.table.num_rows <= MOST_RESULTS)
    expected, rng, spec = Expected(answer, len(case.steps)), Random(seed), case.queries[0].spec
    engine, outputs = start(case.streams), dict[str, list[object]]()
    for name in spreadings():
        nodes = rng.choice((1, 2, 3, 3, 5, 8))
        try:
            engine.add_query(name, spec.cql(), spread=name, nodes=nodes)
        except ms.PlanError:
            assert name == "lanes"
            continue
        outputs[name] = []
        note(f"{name} over {nodes} nodes: {spec.cql()}")
        SEEN.update({name: 1, f"{name} found": min(1, answer.table.num_rows)})
    for step in case.steps:
        for name, table in engine.push(dict(step)).items():
            outputs[name].append(table)
    for name, found in outputs.items():
        expected.check(found, in_order=case.in_order, label=name)


def test_every_way_had_cases() -> None:
    """The test above would be green of ways that refuse everything, and of joins that find nothing."""
    assert {name for name in WAYS if SEEN[name] < CASES * (0.9 if name != "lanes" else 0.05)} == set()
    assert {name for name in WAYS if SEEN[f"{name} found"] < SEEN[name] / 3} == set()
