"""Subqueries and WITH over one stream give what the oracle has for the same query without them, amid migrations."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from hypothesis import strategies as st
from typing_extensions import override

from tests.oracle.spec import Condition, QuerySpec, SourceSpec, duration


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
