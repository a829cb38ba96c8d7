"""A chain of a manifest: what its queries read of it, and what its operators have counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running_states import operators_of
from midstream.expr.expression import conjunction
from midstream.logical.query import query_of
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.manifest import Manifest, QueryEntry
from midstream.operators.window_join import WindowJoin
from midstream.runtime.box import Box
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import shape_of
from midstream.units.chain_unit import ChainUnit


@dataclass(frozen=True)
class ChainView:
    """A chain of a manifest, by the report of it; `boxes` are what runs it."""

    manifest: Manifest
    report: Report
    unit: ChainUnit
    boxes: Sequence[Box]

    @property
    def name(self) -> str:
        """The chain's name."""
        return self.unit.name

    @cached_property
    def members(self) -> dict[str, QueryEntry]:
        """Its queries, in rising order of their widest window."""
        entries = {name: self.manifest.queries[name] for name in self.unit.queries}
        return dict(sorted(entries.items(), key=lambda item: (widest(item[1]), item[0])))

    @cached_property
    def filters(self) -> dict[str, dict[str, tuple[frozenset[str], str, int]]]:
        """By label and text of a filter: its conjuncts, how it is read, and the widest window of its queries."""
        found: dict[str, dict[str, tuple[frozenset[str], str, int]]] = {label: {} for label in self.labels}
        for entry in self.members.values():
            for label, demand in entry.demands.items():
                known = found[label].get(demand.filter)
                if known is None or known[2] < demand.size:
                    conditions = shape_of(query_of(entry)).filters[label]
                    parts = frozenset(condition.text() for condition in conditions)
                    found[label][demand.filter] = parts, conjunction(conditions), demand.size
        return found

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Its sources."""
        return tuple(self.unit.query.aliases)

    @property
    def cuts(self) -> tuple[int, ...]:
        """The ends of its slices; one end where it is not cut.

        The last one reaches as far as a query that was added since it was cut.
        """
        cuts = self.manifest.chains[self.name].cuts
        return (*cuts[:-1], max(*cuts[-1:], *map(widest, self.members.values()), 0))

    def timed(self) -> bool:
        """Return whether ages are times: all windows are RANGE."""
        return all(self.kind(label) == "range" for label in self.labels)

    def kind(self, label: str) -> str:
        """Return what the windows on a source are measured in."""
        return self.manifest.shared_sources[self.manifest.chains[self.name].sources[label]].kind

    def beyond(self, age: int) -> dict[str, list[str] | None]:
        """Return by label the filters whose disjunction rows older than this pass; None where all rows do."""
        if not scheme(self.manifest.sharing).filtered:
            return dict.fromkeys(self.labels)
        return {label: _disjunction(held, age) for label, held in self.filters.items()}

    def counted(self, operator: OperatorId) -> Counters:
        """Return what an operator of the chain has counted."""
        return self.report.counted(self.unit.group, operator)

    @cached_property
    def comparisons(self) -> int:
        """Those of all operators of the chain."""
        return sum(self.counted(id).comparisons for id in {op.id for op in operators_of(self.boxes)})

    def compared(self, end: int) -> int:
        """Return the comparisons made in the slice that ends at this age; without cuts those of all joins."""
        if not self.manifest.chains[self.name].cuts:
            return self.comparisons
        joins = {op.id for op in operators_of(self.boxes) if isinstance(op, WindowJoin)}
        return sum(self.counted(join.in_slice(end)).comparisons for join in joins)

    def read_as(self, entry: QueryEntry) -> dict[str, dict[str, Any]]:
        """Return by label the window and the filter of a query."""
        return {
            label: {"window": demand.size, "filter": self.filters[label][demand.filter][1] or None}
            for label, demand in sorted(entry.demands.items())
        }


def widest(entry: QueryEntry) -> int:
    """Return the widest of a query's windows."""
    return max(demand.size for demand in entry.demands.values())


def _disjunction(held: Mapping[str, tuple[frozenset[str], str, int]], age: int) -> list[str] | None:
    # A filter that another one implies adds nothing to a disjunction.
    beyond = [(parts, text) for parts, text, size in held.values() if size > age]
    if any(not parts for parts, _ in beyond):
        return None
    return sorted(text for parts, text in beyond if not any(other < parts for other, _ in beyond))
