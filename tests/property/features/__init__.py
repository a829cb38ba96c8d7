"""One grammar of queries: what a query can ask, each with what the oracle answers.

Every module has the clauses of one feature. `FEATURES` names them all; `tests/property/test_features.py` asks each one
alone and several beside each other, amid migrations, rescales and restarts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.oracle.answer import Answer
from tests.oracle.spec import QuerySpec
from tests.property.cases import LARGEST
from tests.property.drive import Case
from tests.property.features import above_windows, firsts, group_windows, ranked, sessions, set_operations
from tests.property.features.interval_joins import interval_joins
from tests.property.features.join_chains import chains
from tests.property.features.nested import nested
from tests.property.features.outer_joins import outer_joins
from tests.property.features.relations import relations
from tests.property.queries import queries
from tests.property.rows import TIME_TYPES, Shape

Specs = st.SearchStrategy[QuerySpec]


def of_the_oracle(case: Case) -> Answer:
    """Return the oracle's answer to the first query."""
    return replace(case, queries=case.queries[:1]).expected()[case.queries[0].name]


@dataclass(frozen=True)
class Feature:
    """Queries of one kind.

    Attributes:
        specs: What is asked of rows of a shape.
        streams: How many streams it reads, from A on.
        largest: The most rows of a stream.
        expect: What must be answered to the first query of a case.
        at_once: Whether each result must come in the very step that makes it an answer.
        timestamps: Whether times must be TIMESTAMPs in microseconds.
    """

    specs: Callable[[Shape], Specs]
    streams: int
    largest: int
    expect: Callable[[Case], Answer] = of_the_oracle
    at_once: bool = False
    timestamps: bool = False


def fixed(specs: Specs) -> Callable[[Shape], Specs]:
    """Return what draws the same queries whatever the rows are like."""
    return lambda shape: specs


def micros(shape: Shape) -> bool:
    """Tell whether times are in microseconds: in nanoseconds intervals imply windows that are a microsecond wider."""
    return shape.time in TIME_TYPES[:2]


def wrapped(kinds: tuple[str, ...]) -> Specs:
    """Draw queries some of whose sources are subqueries."""
    return queries("ABC", kinds=kinds, sources=3).flatmap(nested)


WINDOWS, SESSIONS = group_windows.windowed(), sessions.sessions()

FEATURES: dict[str, Feature] = {
    "aggregates": Feature(fixed(queries("ABC", kinds=("aggregate",), sources=3)), 3, LARGEST[3]),
    "windows": Feature(fixed(WINDOWS), 2, LARGEST[1], group_windows.expected, at_once=True),
    "sessions": Feature(fixed(SESSIONS), 2, LARGEST[1], sessions.expected, at_once=True),
    "firsts every so often": Feature(fixed(firsts.grouped()), 2, LARGEST[3]),
    "above windows": Feature(fixed(above_windows.above(WINDOWS)), 2, LARGEST[1], above_windows.expected, at_once=True),
    "above sessions": Feature(
        fixed(above_windows.above(SESSIONS)), 2, LARGEST[1], above_windows.expected, at_once=True
    ),
    "windows together": Feature(
        fixed(st.sampled_from(set_operations.OPERATIONS).flatmap(above_windows.together)),
        2,
        LARGEST[1],
        above_windows.expected_together,
        at_once=True,
    ),
    "joins together": Feature(fixed(set_operations.together()), 3, LARGEST[5], set_operations.expected),
    "ranked": Feature(fixed(ranked.ranked()), 2, LARGEST[3]),
    "what enters and leaves": Feature(fixed(relations("ISTREAM", "DSTREAM", "DSTREAM")), 3, LARGEST[3], at_once=True),
    "relations at instants": Feature(fixed(relations("RSTREAM")), 3, LARGEST[3], at_once=True),
    "outer joins": Feature(lambda shape: outer_joins(interval=micros(shape)), 2, LARGEST[2], at_once=True),
    "chains": Feature(lambda shape: chains(4, interval=micros(shape), aggregated=False), 4, LARGEST[4], at_once=True),
    "aggregates over chains": Feature(
        lambda shape: chains(3, interval=micros(shape), aggregated=True), 3, LARGEST[4], at_once=True
    ),
    "subqueries": Feature(fixed(wrapped(("join", "join", "aggregate"))), 3, LARGEST[3]),
    "interval joins": Feature(
        fixed(st.sampled_from(("AB", "ABC", "ABC", "ABCD")).flatmap(interval_joins)), 4, LARGEST[4], timestamps=True
    ),
}
