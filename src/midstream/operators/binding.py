"""The facts about a query that its plan does not give to compilation: signatures, base rows, states and leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from midstream.expr.expression import Expression
from midstream.logical.query import Query
from midstream.model.sharing import Demands
from midstream.model.window import EVENT_TIME, Clock
from midstream.operators.need import Need, demand_text, need_of
from midstream.operators.source import SourceOperator
from midstream.plan.signature import Signature, signature
from midstream.runtime.operator import Operator
from midstream.state.lineage import Lineage
from midstream.state.specs import Index, RowsSpec, StateSpec


@dataclass(frozen=True)
class Binding:
    """The facts about a query that compilation needs in addition to its plan.

    `scope` goes into every signature; `columns` gives per base signature the payload to keep, `inputs` per stream the
    lane's input that feeds it. `keeps` says that base rows are kept where no join needs them, `sums_up` that an
    aggregate needs them in their own step only. Where the query stands
    for several that share states, `lineages` has for each source how long its rows live and `demands` what each query
    reads; `columns` is by label then. `orders` has for some sources the order in which conditions are evaluated.
    """

    query: Query
    scope: str
    columns: Mapping[str, tuple[str, ...]]
    inputs: Mapping[str, str]
    keeps: bool = False
    sums_up: bool = field(default=False, kw_only=True)
    lineages: Mapping[str, Lineage] = field(default_factory=dict)
    demands: tuple[Demands, ...] = ()
    orders: Mapping[str, tuple[int, ...]] = field(default_factory=dict, kw_only=True)

    def signature(self, labels: Iterable[str]) -> Signature:
        """The signature of the state over these sources."""
        inside = frozenset(labels)
        if inside not in self._signatures:
            counted = "".join(f" {clock}" for clock in self.clocks if clock != EVENT_TIME)
            needed = None
            if self.lineages:
                needed = " ".join(f"{a}@{self.lineages[a].since}" for a in sorted(inside))
                if len(inside) > 1:
                    needed += f" {demand_text(self.demands, inside)}{self._kept(inside)}"
            self._signatures[inside] = signature(self.query, inside, self.scope + counted, needed)
        return self._signatures[inside]

    def _kept(self, inside: frozenset[str]) -> str:
        """For which queries rows are kept below, where that is for longer than this one's windows say.

        Such combinations must not outlive the rows that they are made of.
        """
        if need_of(self.demands, inside, self.lineages) is None:
            return ""
        return " of " + " ".join(self.lineages[label].digest for label in sorted(inside))

    @cached_property
    def _signatures(self) -> dict[frozenset[str], Signature]:
        # Every step looks up each state of its plan.
        return {}

    @property
    def clocks(self) -> tuple[Clock, ...]:
        """The clocks that the query's windows are measured on."""
        return (EVENT_TIME, *(Clock(stream) for stream in sorted(self.query.counted)))

    def rows(self) -> Mapping[str, RowsSpec]:
        """The base rows of every source."""
        return self._rows_of_sources

    @cached_property
    def _rows_of_sources(self) -> Mapping[str, RowsSpec]:
        # Every operator of a plan looks them up; over a hundred sources each answer takes long to find.
        return {source.alias: self._rows(source.alias) for source in self.query.sources}

    def state(self, labels: Iterable[str], index: Index, key: tuple[Expression, ...] = ()) -> StateSpec:
        """The state over these sources, indexed so."""
        ordered = tuple(sorted(labels))
        base = self.rows()[ordered[0]] if len(ordered) == 1 and self.lineages else None
        return StateSpec(self.signature(ordered), ordered, self.clocks, index, key, base)

    def leaf(self, label: str) -> Operator:
        """The operator of a leaf."""
        return compile_source(self, label)

    def need(self, labels: Iterable[str]) -> Need | None:
        """What the queries need of the combinations of these sources, where lifetimes do not say it already."""
        return need_of(self.demands, frozenset(labels), self.lineages) if self.lineages else None

    def _rows(self, label: str) -> RowsSpec:
        source, sign = self.query.source(label), self.signature((label,))
        at = label if self.lineages else sign.digest()
        columns = self.columns.get(at, self.query.kept_columns(label))
        kept = self.keeps or (self.query.keeps_rows and not self.sums_up)
        return RowsSpec(
            sign, label, source.stream, source.window, columns, self.clocks, kept, self.inputs[source.stream],
            self.lineages.get(label),
        )  # fmt: skip


def compile_source(binding: Binding, label: str) -> SourceOperator:
    """The operator of one source."""
    rows = binding.rows()
    conditions = tuple(e for alias, e in binding.query.selections if alias in (label, ""))
    made = SourceOperator(rows[label].signature, rows, rows[label], conditions)
    order = binding.orders.get(label, ())
    # An order of other conditions is left over from before the query changed, and goes at the next review.
    return replace(made, order=order) if order and len(order) == len(made.tested) else made
