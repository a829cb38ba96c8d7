"""The chain that a query runs in, as values: slices, the filters between them, who reads what (Wang Figs. 5.4, 7.6).

Between two slices Wang draws a filter, the disjunction of the predicates of all queries that read beyond (§7.4.1). Here
each filter is evaluated once, when a row arrives, and the outcome is kept as the row's lineage; so the disjunctions say
what rows are kept, and no operator stands there.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

from midstream.explain.chain_view import ChainView, widest
from midstream.expr.expression import conjunction
from midstream.model.codec import encode
from midstream.model.ids import OperatorId
from midstream.sharing.schemes.scheme_contract import scheme
from midstream.state.lineage import Lineage


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
