"""The running plan of a query for a reader who knows SQL and no paper: a tree with rows, kept rows and work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from midstream.checkpoint.report import report
from midstream.checkpoint.report_values import QueryReport, Report
from midstream.checkpoint.running_states import running_boxes
from midstream.logical.query import query_of
from midstream.migration.under_way.transition import Transition
from midstream.model.manifest import Manifest
from midstream.model.words import counted, coverage_text, wrapped
from midstream.operators.source import SourceOperator
from midstream.plan.key_classes import tied_sources
from midstream.plan.tree import draw
from midstream.runtime.operator import Operator
from midstream.units.program import unit_of

_HEAD = ("rows in", "rows out", "rows kept", "work")


@dataclass(frozen=True)
class _Node:
    text: str
    figures: tuple[int, int, int, int]  # rows in, rows out, rows kept, pairs compared
    below: tuple[_Node, ...]

    def walk(self) -> Iterator[_Node]:
        yield self
        for node in self.below:
            yield from node.walk()


def explain_plainly(manifest: Manifest, name: str) -> str:
    """Draw the running plan of a query as a table whose first column is the tree.

    Rows in and out and the pairs compared are counted since the query began or moved to this plan. Rows kept are those
    alive now. `work` is the share of all pairs that the plan compared, because midstream times no operator by itself.
    Raises `QueryError` where no query has this name.
    """
    found = report(manifest)
    query = found.query(name)
    unit = unit_of(manifest, name)
    boxes = running_boxes(manifest, unit)
    kept = _kept(found, unit.group, boxes[0].operators())
    trees = [_node(found, unit.group, root, kept) for root in boxes[0].operators()]
    lines = [*_about(manifest, found, query), "", *_table(trees)]
    return "\n".join(lines)


def _about(manifest: Manifest, found: Report, query: QueryReport) -> Iterator[str]:
    name = query.name
    yield f"query {name}, after step {manifest.step}, in {counted(query.lanes, 'lane')}"
    yield wrapped("SQL      ", " ".join(query.sql.split()))
    yield f"plan     {query.plan}"
    labels = unit_of(manifest, name).labels_of(name)
    if aliases := [f"{alias} is {label}" for alias, label in labels.items() if alias != label]:
        yield wrapped("aliases  ", ", ".join(aliases))
    if query.sees != "all":
        yield wrapped("rows     ", coverage_text(query.sees, query.from_step, query.exact_from))
    mates = [
        other for other, one in found.queries.items() if other != name and query.chain and one.chain == query.chain
    ]
    if mates:
        yield wrapped("shared   ", f"rows and joins are shared with {', '.join(mates)}; the figures are those of all")
    groups = tied_sources(query_of(manifest.queries[name]))
    if len(groups) > 1:
        untied = " and ".join(", ".join(group) for group in groups)
        yield wrapped("warning  ", f"a cross join: no condition ties {untied}, so every row meets every other")
    for stream in found.streams.values():
        if name in stream.holds_back:
            yield wrapped("waiting  ", f"for stream {stream.name}: {stream.since}")
    for move in (query.migration_json() or {}).get("under_way", ()):
        done = f"{move.get('progress', 0):.0%} done"
        yield wrapped("migration ", f"by {move['strategy']} to {move['plan']} since step {move['begun']}, {done}")
    if query.optimizer.decision:
        yield wrapped("optimizer ", f"{query.optimizer.decision}: {query.optimizer.reason}")


def _kept(found: Report, group: str, roots: Sequence[Operator]) -> dict[str, int]:
    # By the id of the operator whose output is kept. An output may be kept under several keys: its rows count once.
    alive = {state.id: state.rows for state in found.states if state.group == group}
    kept: dict[str, int] = {}
    for root in roots:
        for operator in root.walk():
            own = [(operator, operator.spec.id)] if isinstance(operator, SourceOperator) else []
            for producer, state in [*own, *((producer, spec.id) for producer, spec in operator.states())]:
                key = str(producer.id)
                kept[key] = max(kept.get(key, 0), alive.get(state, 0))
    return kept


def _node(found: Report, group: str, operator: Operator, kept: dict[str, int]) -> _Node:
    below = tuple(_node(found, group, child, kept) for child in operator.children())
    if isinstance(operator, Transition):
        parts = ["the old plan"] * (operator.old is not None) + ["the new plan"]
        below = tuple(_Node(part, (0, 0, 0, 0), (tree,)) for part, tree in zip(parts, below, strict=True))
    counters = found.counted(group, operator.id)
    figures = (counters.rows_in, counters.rows_out, kept.get(str(operator.id), 0), counters.comparisons)
    return _Node(operator.title(), figures, below)


def _table(trees: Sequence[_Node]) -> list[str]:
    nodes = [node for tree in trees for node in tree.walk()]
    pairs = sum(node.figures[3] for node in nodes)
    texts = [line for tree in trees for line in draw(tree, lambda node: node.text, lambda node: node.below).split("\n")]
    rows = [_HEAD] + [
        (*(f"{figure:,}" for figure in node.figures[:3]), f"{node.figures[3] / pairs:.0%}" if node.figures[3] else "")
        for node in nodes
    ]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    first = max(map(len, texts))
    return [
        f"{text:<{first}}  {'  '.join(f'{c:>{width}}' for c, width in zip(row, widths, strict=True))}".rstrip()
        for text, row in zip(["", *texts], rows, strict=True)
    ]
