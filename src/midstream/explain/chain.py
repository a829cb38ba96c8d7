"""The chain that a query runs in, as values: slices, the filters between them, who reads what (Wang Figs. 5.4, 7.6).

Between two slices Wang draws a filter, the disjunction of the predicates of all queries that read beyond (§7.4.1). Here
each filter is evaluated once, when a row arrives, and the outcome is kept as the row's lineage; so the disjunctions say
what rows are kept, and no operator stands there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running_states import operators_of
from midstream.expr.expression import conjunction
from midstream.logical.query import query_of
from midstream.model.codec import encode
from midstream.model.counters import Counters
from midstream.model.ids import OperatorId
from midstream.model.manifest import Manifest, QueryEntry
from midstream.operators.window_join import WindowJoin
from midstream.runtime.box import Box
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.sharing.shape import shape_of
from midstream.state.lineage import Lineage
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
        """Return the queries of the chain, those with the narrowest widest window first."""
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
        """List the sources of the chain."""
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
        """Count the comparisons of all operators of the chain."""
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


def chain_values(view: ChainView, *, analyze: bool) -> dict[str, Any]:
    """Describe the chain as JSON values.

    Ages are in microseconds; a `filter` or a disjunction of None lets every row through.

    `slices` say how many queries read them and whose widest window ends in them (`ending`); each query's windows and
    filters are in `queries`. With `analyze` there are `rows` (those alive), `comparisons` and the counters of route and
    union; `elsewhere` are the comparisons made in no slice of now: under other cuts, above the slices, or in other
    operators.
    """
    manifest, unit, chain = view.manifest, view.unit, view.manifest.chains[view.name]
    value: dict[str, Any] = {
        "chain": unit.name,
        "sharing": manifest.sharing,
        "delivery": _delivery(view),
        "plan": chain.plan,
        "timed": view.timed(),
        "windows": len({tuple(demand.size for demand in entry.demands.values()) for entry in view.members.values()}),
        "queries": {
            name: {
                "reads": view.read_as(entry),
                "sees": entry.sees,
                "from_step": entry.from_step,
                "exact_from": entry.exact_from,
            }
            for name, entry in view.members.items()
        },
        "migrations": [one.to_json() for one in view.report.migrations if view.members.keys() & set(one.queries)],
        "slices": _slices(view, analyze),
        "lineage": {label: _lineage(view, label) for label in view.labels},
    }
    if not value["timed"]:
        value["slices"][0]["to"] = None  # Rows are counted, by each source's own window.
    if unit.answers.joins:
        value["joins"] = _joins(view, analyze)
    if analyze:
        rows = {state.id: state.rows for state in view.report.states if state.group == unit.group}
        for label, of in value["lineage"].items():
            of["rows"] = rows.get(unit.binding.rows()[label].id, 0)
        value["elsewhere"] = view.comparisons - sum(one["comparisons"] for one in value["slices"])
        value["route"] = encode(view.counted(OperatorId("route", unit.name)))
        value["union"] = encode(view.counted(OperatorId("union", unit.name)))
    return value


def _slices(view: ChainView, analyze: bool) -> list[dict[str, Any]]:
    names, ends = list(view.members), [widest(entry) for entry in view.members.values()]
    rows = view.report.chains[view.name].rows
    found, first = list[dict[str, Any]](), 0
    for at, (low, high) in enumerate(pairwise((0, *view.cuts))):
        last = len(names) if at + 1 == len(view.cuts) else bisect_right(ends, high)
        value: dict[str, Any] = {"from": low, "to": high, "queries": len(names) - first, "ending": names[first:last]}
        value["filter"] = view.beyond(low if at else -1)
        if analyze:
            value["rows"] = {label: counts[at] for label, counts in rows.items()}
            value["comparisons"] = view.compared(high)
        found.append(value)
        first = last
    return found


def _lineage(view: ChainView, label: str) -> dict[str, Any]:
    # All filters on the source, by bit, whichever chain's queries have them.
    manifest, lineage = view.manifest, view.unit.answers.lineages[label]
    source = manifest.chains[view.name].sources[label]
    readers: dict[str, int] = {}
    for entry in manifest.queries.values():
        for demand in entry.demands.values():
            if demand.source == source:
                readers[demand.filter] = readers.get(demand.filter, 0) + 1
    every = not scheme(manifest.sharing).filtered
    filters = [
        {
            "bit": one.bit,
            "filter": conjunction(lineage.conditions_of(one)) or None,
            "window": one.size,
            "since": one.since,
            "queries": sum(readers.values()) if every else readers.get(one.text, 0),
        }
        for one in sorted(lineage.filters, key=lambda one: one.bit)
    ]
    return {"stream": lineage.stream, "kind": lineage.kind, "filters": filters}


def _joins(view: ChainView, analyze: bool) -> list[dict[str, Any]]:
    answers, roots = view.unit.answers, view.boxes[0].operators()
    found = []
    for join, root in zip(answers.joins, roots, strict=True):
        parts = {label: _part(answers.lineages[label], word) for label, word in join.words.items()}
        windows = {label: max(m.demands[label].size for m in join.members) for label in join.words}
        value = {"parts": parts, "windows": windows, "queries": [member.name for member in join.members]}
        if analyze:
            value["counters"] = encode(view.counted(root.id))
        found.append(value)
    return found


def _part(lineage: Lineage, word: int) -> dict[str, list[str]]:
    # Filters that all rows pass tell no parts apart.
    texts = {f.mask: conjunction(lineage.conditions_of(f)) for f in lineage.filters}
    return {
        "passes": [text for mask, text in texts.items() if text and mask & word],
        "fails": [text for mask, text in texts.items() if not mask & word],
    }


def _delivery(view: ChainView) -> str:
    # By `slice`, by `router`, by a join for each choice of `parts`, or as they `come`.
    answers = view.unit.answers
    if answers.joins:
        return "parts"
    if answers.single:
        return "come"
    return "router" if answers.delivery == "router" else "slice"
