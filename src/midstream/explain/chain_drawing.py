"""A chain drawn as text: readable in 80 columns, whether it has three queries or a thousand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from midstream.model.words import counted, some, span_text, window_text, wrapped
from midstream.plan.tree import draw

WIDE = 77
"""Columns of a line of the chain; a branch stands before it."""

MANY = 8
"""Slices, joins and filters of which all are drawn; of more the first, the last and the query's own."""

ROUTES = {
    "slice": "a result goes where its slice and its rows' lineage say",
    "router": "every result is held against each query's windows and filters",
    "parts": "every result of a join is held against the windows of its queries",
}
"""How results find their queries."""

Value = Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A line of the drawing, or some, and what hangs below."""

    lines: str
    below: tuple[Node, ...] = ()


def draw_chain(value: Value, query: str) -> str:
    """Draw the chain of `chain_values` as a tree; if not all slices and joins fit, those of `query` are drawn."""
    through = _joins(value, query) if "joins" in value else _slices(value, query)
    lineage = Node("lineage", tuple(_source(label, of) for label, of in value["lineage"].items()))
    whole = Node(_head(value), (*through, *_delivery(value), lineage))
    return draw(whole, lambda node: node.lines, lambda node: node.below)


def reads_text(value: Value, query: str) -> str:
    """Describe what a query reads of its chain, a source at a time."""
    return ", ".join(
        f"{label} [{window_text(value['lineage'][label]['kind'], of['window'])}]"
        + (f" where {of['filter']}" if of["filter"] else "")
        for label, of in value["queries"][query]["reads"].items()
    )


def _head(value: Value) -> str:
    parts = [value["sharing"], counted(len(value["queries"]), "query"), counted(value["windows"], "window")]
    parts.append(counted(len(value.get("joins", value["slices"])), "join" if "joins" in value else "slice"))
    return wrapped(f"chain {value['chain']}  ", f"{', '.join(parts)}, plan {value['plan']}")


def _slices(value: Value, query: str) -> Iterator[Node]:
    # From young to old, with a filter between slices where fewer rows go on.
    slices = value["slices"]
    own = [at for at, one in enumerate(slices) if query in one["ending"]]
    before = dict.fromkeys(value["lineage"])
    for at in _places(len(slices), own):
        if isinstance(at, range):
            yield Node(_left_out([slices[i] for i in at]))
            continue
        if slices[at]["filter"] != before:
            yield Node(_filter(slices[at]["filter"]))
            before = slices[at]["filter"]
        yield Node(_slice(value, at))


def _places(count: int, own: Sequence[int]) -> Iterator[int | range]:
    """Yield the places to show, in order, and between them the ranges of those left out.

    >>> list(_places(1000, [500]))
    [0, 1, 2, range(3, 500), 500, range(501, 999), 999]
    """
    last = -1
    for at in sorted({0, 1, 2, *own, count - 1}) if count > MANY else range(count):
        if at > last + 1:
            yield range(last + 1, at)
        yield at
        last = at


def _slice(value: Value, at: int) -> str:
    one, readers = value["slices"][at], list[str]()
    for later in value["slices"][at:]:
        readers += later["ending"]
        if len(readers) > MANY:
            break
    head = f"slice {at + 1}  {_ages(value, one)}  read by "
    lines = wrapped(head, some(readers, one["queries"]), WIDE)
    return lines if "rows" not in one else f"{lines}\n{_work(one['rows'], one['comparisons'])}"


def _left_out(slices: Sequence[Value]) -> str:
    line = f"... {counted(len(slices), 'slice')} up to {span_text(slices[-1]['to'])}"
    if "rows" not in slices[0]:
        return line
    rows = {label: sum(one["rows"][label] for one in slices) for label in slices[0]["rows"]}
    return f"{line}\n{_work(rows, sum(one['comparisons'] for one in slices))}"


def _work(rows: Mapping[str, int], comparisons: int) -> str:
    counts = [f"{label} {counted(count, 'row')}" for label, count in rows.items()]
    return wrapped("   ", ", ".join([*counts, counted(comparisons, "comparison")]), WIDE)


def _ages(value: Value, one: Value) -> str:
    # A row of age exactly the end of a slice is in it.
    if not value["timed"]:
        return "[whole windows]"
    return f"{'(' if one['from'] else '['}{span_text(one['from'])}, {span_text(one['to'])}]"


def _filter(by_label: Mapping[str, Sequence[str] | None]) -> str:
    lines = [f"{label}: {_either(texts)}" for label, texts in by_label.items() if texts is not None]
    return "\n".join(wrapped("        " if at else "filter  ", text, WIDE) for at, text in enumerate(lines))


def _either(texts: Sequence[str]) -> str:
    shown = [f"({text})" if " and " in text and len(texts) > 1 else text for text in texts]
    if len(shown) > 4:
        shown[3:] = [f"{len(shown) - 3:,} more"]
    return " or ".join(shown) or "no row"


def _joins(value: Value, query: str) -> Iterator[Node]:
    # Of many joins those that the query reads first.
    joins = value["joins"]
    own = [at for at, join in enumerate(joins) if query in join["queries"]]
    for at in _places(len(joins), own[:2]):
        yield Node(f"... {counted(len(at), 'join')}" if isinstance(at, range) else _join(value, joins[at]))


def _join(value: Value, join: Value) -> str:
    lines = [wrapped("join  read by ", some(join["queries"]), WIDE)]
    for label, part in join["parts"].items():
        size = window_text(value["lineage"][label]["kind"], join["windows"][label])
        lines.append(wrapped("   ", f"{label} [{size}]: {_part(part)}", WIDE))
    if "counters" in join:
        names = {"row": "rows_in", "comparison": "comparisons", "result": "rows_out"}
        lines.append("   " + ", ".join(counted(join["counters"].get(name, 0), noun) for noun, name in names.items()))
    return "\n".join(lines)


def _part(part: Mapping[str, Sequence[str]]) -> str:
    passed = [f"({text})" if " or " in text else text for text in part["passes"]]
    failed = [f"not ({text})" if " " in text else f"not {text}" for text in part["fails"]]
    return " and ".join([*passed, *failed]) or "every row"


def _delivery(value: Value) -> Iterator[Node]:
    if value["delivery"] in ROUTES:
        line = wrapped("route  ", ROUTES[value["delivery"]], WIDE)
        if "route" in value:
            line += f"\n   {counted(value['route'].get('predicates', 0), 'decision')}"
        yield Node(line, _tests(value) if value["delivery"] == "router" else ())
    if value.get("union"):
        found, given = value["union"].get("rows_in", 0), value["union"].get("rows_out", 0)
        yield Node(f"union  {counted(found, 'result')}, {counted(given, 'row')} to the queries")
    if value.get("elsewhere"):
        text = "above the slices, by other plans or under other cuts"
        yield Node(wrapped("besides  ", f"{counted(value['elsewhere'], 'comparison')} {text}", WIDE))


def _tests(value: Value) -> tuple[Node, ...]:
    names = list(value["queries"])
    shown = names[:3] if len(names) > MANY else names
    nodes = [Node(wrapped(f"{name}  ", reads_text(value, name), WIDE - 3)) for name in shown]
    return (*nodes, *_more(len(names) - len(shown), "query"))


def _source(label: str, of: Value) -> Node:
    # The bit of each filter in a row's lineage, and how long it keeps a row.
    nodes = []
    for one in of["filters"][:3] if len(of["filters"]) > MANY else of["filters"]:
        head = f"bit {one['bit']}  {window_text(of['kind'], one['window'])}, {counted(one['queries'], 'query')}  "
        nodes.append(Node(wrapped(head, one["filter"] or "every row", WIDE - 6)))
    line = label if "rows" not in of else f"{label}  {counted(of['rows'], 'row')} alive"
    return Node(line, (*nodes, *_more(len(of["filters"]) - len(nodes), "filter")))


def _more(count: int, noun: str) -> tuple[Node, ...]:
    return (Node(f"... {counted(count, noun)}"),) if count else ()
