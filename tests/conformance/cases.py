"""One drawn case, whose oracle's answers serve every strategy: the oracle is what costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from zlib import crc32

from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.vendor.pretty import RepresentationPrinter

from tests.conformance.expected import Expected
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import SECOND, QuerySpec
from tests.property.cases import cuts, shapes, twins
from tests.property.drive import Case
from tests.property.queries import queries
from tests.property.rows import Pushed, cut, draw_rows

KINDS = (*("join",) * 14, "aggregate", "aggregate", "difference")
LARGEST = {1: 30, 2: 30, 3: 18, 4: 11, 5: 7}
"""The most rows a stream has, by the number of the query's sources."""

MOST_RESULTS = 1500
DAY = 86_400 * SECOND
TAIL = 10
"""How many rows come once more a day later: by then all that was old is spent, and a new plan stands alone."""


@dataclass(frozen=True)
class Drawn:
    """Rows in steps and three queries: the `main` one, one near to it, one that keeps no state."""

    case: Case
    expected: dict[str, Expected]
    seed: int

    def spec(self, name: str) -> QuerySpec:
        """One of the queries."""
        return next(life.spec for life in self.case.queries if life.name == name)

    def _repr_pretty_(self, printer: RepresentationPrinter, cycle: bool) -> None:
        """What hypothesis shows of a case that fails; what matters of it is in the program it notes."""
        printer.text(f"Drawn({self.spec('main').cql()!r}, seed={self.seed})")


@st.composite
def cases(draw: st.DrawFn) -> Drawn:
    """A case: ties, nulls, skew, disorder, late rows; `twin` joins `main` at some step."""
    count = draw(st.sampled_from((3, 4, 2, 5, 3)))
    names = "ABCDE"[:count]
    least = draw(st.sampled_from((3, 3, 4, 5)))
    main = draw(queries(names, kinds=KINDS, least=least).filter(lambda query: len(query.all_sources) > 1))
    # A difference has results more often than a join, and fewer plans: what has none is drawn again.
    assume(not main.subtracted or draw(st.integers(0, 2)) == 0)
    if draw(st.integers(0, 3)):
        main = wider(main)
    plain = draw(queries(names, kinds=("single",)))
    shape = draw(shapes(count, LARGEST[len(main.all_sources)]))
    streams, sequence = draw_rows(shape)
    steps = cut(streams, again(sequence) if draw(st.integers(0, 2)) else sequence, draw(cuts()))
    since = draw(st.integers(0, len(steps) - 1))
    asked = Lifetime("main", main), Lifetime("twin", draw(twins(main)), since), Lifetime("plain", plain)
    case = Case(streams, steps, asked, shape.in_order)
    answers = case.expected()
    assume(all(answer.table.num_rows <= MOST_RESULTS for answer in answers.values()))
    assume(answers["main"].table.num_rows or draw(st.integers(0, 5)) == 0)
    expected = {name: Expected(answer, len(steps)) for name, answer in answers.items()}
    # Small numbers are drawn more often than others; these are not.
    seed = crc32(f"{draw(st.integers(0, 2**32))} {main.cql()} {shape}".encode())
    return Drawn(case, expected, seed)


def wider(spec: QuerySpec) -> QuerySpec:
    """The query with longer windows in time: more results, and migrations that last."""
    sources = [replace(s, range=None if s.range is None else s.range + 3 * SECOND) for s in spec.sources]
    return replace(spec, sources=tuple(sources), window=None if spec.window is None else spec.window + 3 * SECOND)


def again(sequence: Pushed) -> Pushed:
    """The rows, and the last of them once more a day later."""
    last = [(name, {**row, "ts": row["ts"] + DAY, "u": row["u"] + 500}) for name, row in sequence[-TAIL:]]
    return sequence + last


def beside(case: Case, *lives: Lifetime) -> Case:
    """The same rows for other queries."""
    return replace(case, queries=lives)
