"""An engine whose shared rings are cut by what their nodes compare, in a process of its own: `python -m
tests.embedded.cut_by_load_engine FOLDER`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import midstream as ms
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case, start
from tests.property.rows import Shape, cut, draw_rows

SCHEMES = ("psp", "psp_d", "psp_i")
NODES = 4
STREAMS, ROWS = draw_rows(Shape(seed=5, sizes=(500, 500), span=50, keys=9, disorder=2, slack=1))
SHORT = QuerySpec(
    tuple(SourceSpec(name, name, range=4 * SECOND) for name in "AB"),
    (Item("A.u", "a"), Item("B.u", "b")),
    (Condition("(A.k + B.n) % 5 = 1", ("A", "B")),),
)
WIDE = replace(
    SHORT,
    sources=tuple(SourceSpec(name, name, range=12 * SECOND) for name in "AB"),
    where=(*SHORT.where, Condition("A.k < 1", ("A",)), Condition("B.k < 1", ("B",))),
)
CASE = Case(
    STREAMS,
    cut(STREAMS, ROWS, tuple(range(2, 100, 2))),
    tuple(
        Lifetime(f"{what}_{scheme}", spec) for scheme in SCHEMES for what, spec in (("short", SHORT), ("wide", WIDE))
    ),
)


def scheme_of(query: str) -> str:
    """The scheme by which a query is spread."""
    return query.split("_", 1)[1]


def main(root: Path | str, case: Case = CASE) -> None:
    """Push what the checkpoint has not taken yet; two queries share the ring of each scheme."""
    with start(STREAMS, checkpoint=f"{root}/checkpoint") as engine:
        for life in case.queries:
            sink = ms.sinks.files(f"{root}/answers/{life.name}")
            engine.add_query(life.name, life.spec.cql(), sink=sink, spread=scheme_of(life.name), nodes=NODES)
        for number in range(engine.manifest.step + 1, len(case.steps)):
            engine.push(dict(case.steps[number]))


if __name__ == "__main__":
    main(sys.argv[1])
