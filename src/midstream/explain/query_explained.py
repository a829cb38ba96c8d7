"""What serves a query: its plan, operators, lanes and states, its chain and its migrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import Report
from midstream.checkpoint.running_states import running_boxes, state_names
from midstream.explain.chain import ChainView, chain_values
from midstream.explain.chain_drawing import draw_chain, reads_text
from midstream.explain.nodes import draw_nodes, node_values
from midstream.logical.query import Query, query_of
from midstream.migration.under_way.transition import Transition
from midstream.model.codec import encode
from midstream.model.errors import QueryError
from midstream.model.manifest import Manifest
from midstream.model.words import counted, coverage_text, time_text, wrapped
from midstream.operators.source import SourceOperator
from midstream.plan.key_classes import tied_sources
from midstream.plan.tree import draw
from midstream.runtime.operator import Operator
from midstream.units.chain_unit import chain_unit
from midstream.units.program import unit_of

_PAST = ("sees", "from_step", "exact_from")


def explain(manifest: Manifest, name: str, *, analyze: bool = False, format: str = "text") -> Any:
    """Explain a query: its text, plan, lanes and operators; with `analyze` their live counters.

    `format` is `text` or `json`: a text to read, or JSON values. Raises `QueryError` where no query has this name.
    """
    if format not in ("text", "json"):
        raise QueryError(f"unknown format {format!r}", place="explain", remedy="use 'text' or 'json'")
    found = report(manifest)
    query = found.query(name)
    unit = unit_of(manifest, name)
    boxes = running_boxes(manifest, unit)
    value = {
        "query": name,
        "sql": query.sql,
        "plan": query.plan,
        "since": query.since,
        "joined": query.joined,
        "sees": query.sees,
        "from_step": query.from_step,
        "exact_from": query.exact_from,
        "lanes": query.lanes,
        "spread": query.spread,
        "migration": query.migration_json(),
        "operators": [_operator(found, unit.group, root, analyze) for root in boxes[0].operators()],
    }
    value |= _text_values(query_of(manifest.queries[name]))
    if slow := next((stream for stream in found.streams.values() if name in stream.holds_back), None):
        value["held_back_by"] = {"stream": slow.name, "since": slow.since}
    if query.operator is not None:
        value["on_top"] = query.operator
    if query.nodes is not None:
        value["nodes"] = node_values(manifest, name)
    if query.chain is not None:
        view = ChainView(manifest, found, chain_unit(manifest, query.chain), boxes)
        value["chain"] = chain_values(view, analyze=analyze)
    if query.optimizer.decision:
        value["optimizer"] = query.optimizer.to_json()
    if analyze:
        value["counters"] = encode(query.counters)
        own = [state for state in found.states if state.group == unit.group and state.id in query.states]
        value["states"] = {state.id: state.rows for state in own}
    return value if format == "json" else _text(value, state_names(unit, boxes))


def _text_values(query: Query) -> dict[str, Any]:
    # Only what is more than that its sources are joined.
    value: dict[str, Any] = {}
    if len(groups := tied_sources(query)) > 1:
        value["cross_join"] = [list(group) for group in groups]
    return value if query.on_top is None else value | query.on_top.explained()


def _operator(report: Report, group: str, operator: Operator, analyze: bool) -> dict[str, Any]:
    value: dict[str, Any] = {"operator": _described(operator)}
    if analyze:
        value["counters"] = encode(report.counted(group, operator.id))
    value["inputs"] = [_operator(report, group, child, analyze) for child in operator.children()]
    if isinstance(operator, Transition):
        parts = ["old plan"] * (operator.old is not None) + ["new plan"]
        value["inputs"] = [
            {"operator": part, "inputs": [tree]} for part, tree in zip(parts, value["inputs"], strict=True)
        ]
    return value


def _described(operator: Operator) -> str:
    # The many filters on a shared source are shown by the chain's lineage.
    if isinstance(operator, SourceOperator) and operator.spec.lineage and len(operator.spec.lineage.filters) > 1:
        return f"source {operator.spec.label} by lineage"
    return operator.describe()


def _text(value: dict[str, Any], names: Mapping[str, str]) -> str:
    lanes = f"{value['lanes']} lane{'s' if value['lanes'] != 1 else ''}, {value['spread']}"
    lines = [f"query {value['query']}", f"plan  {value['plan']}", f"lanes {lanes}"]
    lines += [f"on top {value['on_top']}"] if "on_top" in value else []
    if slow := value.get("held_back_by"):
        lines.append(f"waits for stream {slow['stream']}: {slow['since']}")
    lines += [_cross_join(value["cross_join"])] if "cross_join" in value else []
    lines += [_outer_join(value["outer_join"])] if "outer_join" in value else []
    lines += [_lookup(one) for one in value.get("looks_up", ())]
    lines += draw_nodes(value["nodes"]) if "nodes" in value else []
    chain = value.get("chain")
    if chain is not None and _is_worth_it(value):
        lines.append(wrapped("sees  ", coverage_text(*(value[key] for key in _PAST))))
        lines.append(wrapped("reads ", reads_text(chain, value["query"])))
    lines += [_migration(record) for record in (value["migration"] or {}).get("under_way", ())]
    if chain is None or "joins" not in chain:  # Else they are drawn as joins of the chain.
        lines += [draw(tree, _line, lambda node: node["inputs"]) for tree in value["operators"]]
    if chain is not None and _is_worth_it(value):
        lines.append(draw_chain(chain, value["query"]))
    if "states" in value:
        lines.append("states")
        lines += sorted(f"  {names[id]}: {counted(rows, 'row')}" for id, rows in value["states"].items())
    if "optimizer" in value:
        lines.append(wrapped("optimizer ", _optimizer(value["optimizer"], analyzed="counters" in value)))
    return "\n".join(lines)


def _cross_join(groups: Sequence[Sequence[str]]) -> str:
    untied = " and ".join(", ".join(group) for group in groups)
    return wrapped("warning ", f"a cross join: no condition ties {untied}, so that every row meets every other")


def _outer_join(outer: Mapping[str, Any]) -> str:
    rows = " and of ".join(outer["preserved"])
    told = {
        "outer": f"their results, and the rows of {rows} that have none, with NULL for the other's columns",
        "semi": f"the rows of {rows} that have one",
        "anti": f"the rows of {rows} that have none",
    }
    return wrapped("answer ", told[outer["kind"]])


def _lookup(lookup: Mapping[str, Any]) -> str:
    on = " and ".join(lookup["conditions"])
    return wrapped("answer ", f"{lookup['kind']} join with table {lookup['table']}{f' on {on}' if on else ''}")


def _is_worth_it(value: dict[str, Any]) -> bool:
    # Not for a query that is alone in one slice and sees everything.
    chain = value["chain"]
    return len(chain["queries"]) > 1 or len(chain["slices"]) > 1 or value["sees"] != "all"


def _optimizer(value: dict[str, Any], *, analyzed: bool) -> str:
    # The foreseen cost of the plan is shown next to the real one.
    said = f"{value['mode']}, {value['policy']}, in step {value['reviewed_in']}: {value['decision']}, {value['reason']}"
    if not analyzed or value["foreseen"] is None:
        return said
    real = "unknown" if value["real"] is None else f"{value['real'] / 1e6:.3g} ms"
    return f"{said}; work a second: foreseen {value['foreseen'] / 1e6:.3g} ms, real {real}"


def _migration(record: dict[str, Any]) -> str:
    end = record.get("predicted_end")
    when = f", over when event time passes {time_text(end)}" if end else ""
    return (
        f"migration by {record['strategy']} to {record['plan']} since step {record['begun']}: {record.get('phase')}, "
        f"{record.get('progress', 0):.0%} done{when}\n  old plan: {record.get('old_serves')}\n"
        f"  new plan: {record.get('new_serves')}"
    )


def _line(node: dict[str, Any]) -> str:
    counters = node.get("counters")
    if counters is None:
        return str(node["operator"])
    shown = ", ".join(f"{name} {number}" for name, number in counters.items()) or "nothing yet"
    return f"{node['operator']}  ({shown})"
