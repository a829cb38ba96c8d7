"""Subqueries and WITH over one stream give what the oracle has for the same query without them, amid migrations."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from tests.drawing import drawing
from tests.oracle.arrival import Lifetime
from tests.oracle.spec import Condition, QuerySpec, SourceSpec, duration
from tests.property.cases import cases
from tests.property.drive import Migrate, check
from tests.property.queries import plans

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]


@dataclass(frozen=True)
class Nested(QuerySpec):
    """The same query with some sources as subqueries, `deep` of them one in the other, or named by WITH."""

    wrapped: frozenset[str] = frozenset()
    deep: int = 1
    by_name: bool = False

    @override
    def cql(self) -> str:
        inside = {a: tuple(c for c in self.where if c.aliases == (a,)) for a in self.wrapped}
        moved = {condition for conditions in inside.values() for condition in conditions}
        plain = QuerySpec(**{f.name: getattr(self, f.name) for f in fields(QuerySpec)})
        text = replace(plain, where=tuple(c for c in self.where if c not in moved)).cql()
        written, shown, named = ", ".join(source.cql() for source in self.sources), [], []
        for source in self.sources:
            if source.alias not in self.wrapped:
                shown.append(source.cql())
                continue
            select = self._select(source, inside[source.alias])
            named.append(f"with_{source.alias} AS ({select})")
            size = f" [RANGE {duration(source.range)}]" if source.range is not None else ""
            table = f"with_{source.alias}" if self.by_name else f"({select})"
            shown.append(f"{table} AS {source.alias}{size}")
        text = text.replace(f" FROM {written}", f" FROM {', '.join(shown)}", 1)
        return f"WITH {', '.join(named)} {text}" if self.by_name and named else text

    def _select(self, source: SourceSpec, conditions: tuple[Condition, ...]) -> str:
        where = f" WHERE {' AND '.join(f'({c.text})' for c in conditions)}" if conditions else ""
        text = f"SELECT * FROM {source.stream} AS {source.alias}{where}"
        for number in range(1, self.deep):
            text = f"SELECT * FROM ({text}) AS inner{number}"
        return text


@st.composite
def nested(draw: st.DrawFn, spec: QuerySpec) -> Nested:
    """A query with some sources wrapped; a ROWS window counts rows that a filter would leave out."""
    able = [s.alias for s in spec.sources if s.rows is None]
    wrapped = draw(st.sets(st.sampled_from(able)) if able else st.just(set[str]()), label="wrapped")
    known = {f.name: getattr(spec, f.name) for f in fields(QuerySpec)}
    return Nested(**known, wrapped=frozenset(wrapped), deep=draw(st.integers(1, 3)), by_name=draw(st.booleans()))


@drawing(200)
@given(st.data())
def test_subqueries_are_what_stands_in_them(data: st.DataObject) -> None:
    drawn = data.draw(cases(kinds=("join", "join", "aggregate")))
    spec = data.draw(nested(drawn.spec()))
    queries = tuple(
        Lifetime(q.name, spec, q.since, q.until) if q.spec == drawn.spec() else q for q in drawn.case.queries
    )
    case = replace(drawn.case, queries=queries)
    plan = data.draw(st.one_of(st.none(), plans(drawn.spec())), label="plan")
    actions = []
    if drawn.spec().every is None and len(drawn.spec().sources) > 1 and data.draw(st.booleans(), label="moves"):
        strategy = data.draw(st.sampled_from(("moving_state", "hybmig", "jisc", "parallel_track")))
        target = data.draw(plans(drawn.spec()), label="new plan")
        actions = [Migrate(data.draw(st.integers(0, len(case.steps))), "q0", target, strategy)]
    check(case, drawn.expected, {} if plan is None else {"q0": plan}, actions, label=spec.cql())
