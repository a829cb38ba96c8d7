"""What midstream makes of each form of docs/language_table.md, held against `bound/forms.txt`: the SQL and its plan.

A plan is that of the query, behind those of its parts, of which each reads the answers of others by their names; the
digests in names are left out. Each text is executed by tests/docs/test_language_table.py, too. To write the plans anew
after a change that is meant, and then to read the difference:

    MIDSTREAM_GOLDEN=write pytest tests/golden
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from midstream.commands.add_query import AddQuery
from midstream.commands.base import taken
from midstream.expr.expression import Expression
from midstream.logical.query import Aggregate, Difference, LogicalNode, Lookups, OuterJoin, Query, query_of
from midstream.model.manifest import EMBEDDED, Manifest, Published, StaticTable
from midstream.model.schema import StreamSchema, TableSchema
from midstream.pipeline.reconcile import streams_for
from tests.docs.test_language_table import EXAMPLE, TAKEN
from tests.golden.cases import FOLDER
from tests.golden.test_golden import WRITE

PATH = FOLDER / "bound" / "forms.txt"
COLUMNS = pa.schema({"k": pa.int64(), "v": pa.float64(), "s": pa.string(), "ts": pa.timestamp("us")})
STREAMS = {name: StreamSchema(name, COLUMNS, "ts") for name in "AB"}
RATES = TableSchema("rates", pa.schema({"k": pa.int64(), "rate": pa.float64()}))
TEXTS = [found.strip() for found in EXAMPLE.findall(TAKEN)]


def lines(query: Query) -> Iterator[str]:
    """What a query reads, asks and answers."""
    for source in query.sources:
        window = "" if source.window is None else f" [{source.window.kind} {source.window.size}]"
        yield f"source {source.alias}: {source.stream}{window}"
    for alias, condition in query.selections:
        yield f"select {alias}: {condition.text()}"
    for predicate in query.predicates:
        yield f"{type(predicate).__name__.removesuffix('Predicate').lower() or 'theta'}: {predicate.expression.text()}"
    if query.on_top is not None:
        yield from OF_NODES[type(query.on_top)](query.on_top)
    yield from (f"output {output.name}: {output.expression.text()}" for output in query.outputs)
    if query.timed is not None:
        yield f"timed by output {query.timed[0]}, at most {query.timed[1]} late"


def of_outer(outer: OuterJoin) -> Iterator[str]:
    kept = "" if outer.condition is None else f" where {outer.condition.text()}"
    until = "".join(f" until {column.text()} + {size}" for column, size in outer.until)
    yield f"{outer.kind_of_join} of {', '.join(outer.preserved)}{until}{kept}"


def of_difference(difference: Difference) -> Iterator[str]:
    yield f"difference: {difference.minuend} without {', '.join(difference.subtrahends)}"


def of_lookups(node: Lookups) -> Iterator[str]:
    for lookup in node.lookups:
        tied = " and ".join(one.expression.text() for one in lookup.conditions)
        items = "" if lookup.items is None else f" of {lookup.items.text()} as {', '.join(lookup.titles)}"
        latest = "" if lookup.latest is None else f" latest {lookup.latest.text()}"
        yield f"{lookup.kind} lookup {lookup.alias}: {lookup.table}{items}{latest} where {tied}"
    yield from (f"kept if {condition.text()}" for condition in node.kept_if)


def of_aggregate(one: Aggregate) -> Iterator[str]:
    closes = one.session if one.session is not None else one.calendar or f"{one.every} + {one.offset}"
    yield f"{one.form} by {closes}"
    yield from (f"g{at}: {group.text()}" for at, group in enumerate(one.groups))
    for at, call in enumerate(one.calls):
        settings = [
            call.share,
            call.separator,
            "distinct" if call.distinct else None,
            "desc" if call.descending else None,
        ]
        parts = [
            f"{word} {part.text()}" for word, part in (("if", call.condition), ("by", call.by)) if part is not None
        ]
        argument = "*" if call.argument is None else call.argument.text()
        yield " ".join(
            [f"a{at}: {call.function}({argument})", *parts, *(str(one) for one in settings if one is not None)]
        )
    if one.within is not None:
        yield f"within {one.within[0]} + {one.within[1]}"
    if one.over is not None:
        yield f"in order of {ordered(one.over) or 'time'}"
    if one.top is not None:
        yield f"top {one.top.count} by {one.top.function} of {ordered(one.top.order)}"
    if one.having is not None:
        yield f"having {one.having.text()}"


OF_NODES: dict[type[LogicalNode], Callable[[Any], Iterator[str]]] = {
    Aggregate: of_aggregate,
    Difference: of_difference,
    Lookups: of_lookups,
    OuterJoin: of_outer,
}


def ordered(keys: tuple[tuple[Expression, bool], ...]) -> str:
    return ", ".join(f"{key.text()}{' desc' if down else ''}" for key, down in keys)


def pair(text: str) -> str:
    """A text and its plan."""
    command = AddQuery("q", text)
    tables = {"rates": StaticTable(RATES, None, "")}  # type: ignore[arg-type]  # Nothing reads its rows.
    manifest = streams_for(command, STREAMS, {}, "embedded", tables)
    if "q" not in manifest.queries:
        manifest = taken(Manifest(job="golden", streams=STREAMS, tables=tables, published=Published(EMBEDDED)), command)
    blocks = [
        f"{name}\n" + "\n".join(f"  {line}" for line in lines(query_of(entry)))
        for name, entry in manifest.queries.items()
    ]
    seen: dict[str, int] = {}
    return re.sub(
        r"-[0-9a-f]{8}\b",
        lambda found: f"-{seen.setdefault(found[0], len(seen) + 1)}",
        "\n".join([f"## {text}", *blocks]),
    )


def pairs() -> dict[str, str]:
    """The pairs of the file, by their texts."""
    blocks = re.split(r"\n\n(?=## )", PATH.read_text(encoding="utf-8").strip()) if PATH.exists() else []
    return {block.partition("\n")[0].removeprefix("## "): block for block in blocks}


@pytest.mark.parametrize("text", TEXTS)
def test_a_form_is_bound_as_its_plan_says(text: str) -> None:
    if not WRITE:
        assert pair(text) == pairs().get(text), "if the change is meant: MIDSTREAM_GOLDEN=write pytest tests/golden"


def test_every_form_has_a_plan() -> None:
    if WRITE:
        PATH.parent.mkdir(exist_ok=True)
        PATH.write_text("\n\n".join(pair(text) for text in TEXTS) + "\n", encoding="utf-8")
    assert [*pairs()] == TEXTS
