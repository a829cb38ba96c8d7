"""The lane key: what rows are spread over lanes by.

Where a query's equalities tie one key class across all its sources, rows of equal key meet in one lane and each lane
can run the whole plan. Otherwise one lane runs it: always correct.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from midstream.expr.evaluate import evaluate
from midstream.expr.expression import Expression
from midstream.expr.functions import asks_user
from midstream.logical.query import Query
from midstream.model.ids import digest
from midstream.plan.key_classes import key_classes
from midstream.plan.signature import relabel
from midstream.state.base_state import TIME
from midstream.state.keys import key_codes
from midstream.state.xxhash import hash_words

SLOTS = 4096
"""Hash buckets of a lane key; lane = slot modulo lanes, so that rescaling needs no other hash."""

SLOT_OF_NULL = 0
"""The slot of rows without a key where these stay together."""

Slots = npt.NDArray[np.int16]

SINGLE = "single"
"""The group of queries that run in one lane."""

_LEVEL = "-level-"


def group_at(own: str, level: int) -> str:
    """Name a lane group at a level: queries that read answers of others run after those, in other lanes.

    >>> group_at(SINGLE, 0), group_at(SINGLE, 2)
    ('single', 'single-level-2')
    """
    return f"{own}{_LEVEL}{level}" if level else own


def is_single(group: str) -> bool:
    """Return whether a group has one lane, however many a job has.

    >>> is_single("single"), is_single("single-level-1"), is_single("key-0")
    (True, True, False)
    """
    return group == SINGLE or group.startswith(SINGLE + _LEVEL)


def lane_key(query: Query) -> dict[str, Expression] | None:
    """Choose for each stream the expression that spreads its rows, over the stream's name as alias; None: one lane.

    All expressions are of one type, because the two sides of an equality are.
    """
    if is_ordered(query):
        return None
    for members in _classes(query):
        by_alias = {next(iter(e.aliases())): e for e in members}
        if len(by_alias) == len(query.sources) and _groups_by(query, members):
            return _by_stream(query, by_alias)
    return None


def group_name(key: dict[str, Expression] | None) -> str:
    """Name the lane group of a key: queries of one group share a shuffle."""
    if key is None:
        return SINGLE
    text = "; ".join(f"{stream}: {e.text()}::{e.type}" for stream, e in sorted(key.items()))
    return f"key-{digest(text)}"


Spread = tuple[tuple[str, str], ...]
"""A lane key as a manifest records it: for each stream the text of the expression, and its type."""


def spread_text(key: Mapping[str, Expression] | None) -> Spread:
    """Format the key as pairs of stream and text, in order; empty for one lane."""
    return tuple((stream, f"{e.text()}::{e.type}") for stream, e in sorted((key or {}).items()))


def fits(one: Spread, other: Spread) -> bool:
    """Return whether rows spread by one key lie as the other requires: they agree on the streams of both.

    A key of one stream fits its equal only: NULL may be one of its groups, and is no key of a join.

    >>> fits((("A", "A.k::int64"), ("B", "B.k::int64")), (("B", "B.k::int64"), ("C", "C.k::int64")))
    True
    """
    mine, theirs = dict(one), dict(other)
    common = mine.keys() & theirs.keys()
    agree = bool(common) and all(mine[stream] == theirs[stream] for stream in common)
    return agree and (one == other or min(len(one), len(other)) > 1)


def is_ordered(query: Query) -> bool:
    """Return whether a query takes rows in order of event time: evaluated at instants, with a ROWS window."""
    return query.at_instants and any(s.window is not None and s.window.kind == "rows" for s in query.sources)


def slots(key: Mapping[str, Expression], stream: str, rows: pa.RecordBatch) -> Slots:
    """Find the slot of each row of a stream by its key, or by its event time where the key is NULL.

    Rows with a NULL key join nothing, so they are spread; but those of a lone stream may be a group and stay together.
    `midstream.spark.exchange` has this function in SQL.
    """
    codes, valid = key_codes([evaluate(key[stream], lambda c: rows.column(c.name), rows.num_rows)])
    if valid is None:
        return slots_of(codes)
    without = slots_of(rows.column(TIME).fill_null(0).to_numpy()) if len(key) > 1 else SLOT_OF_NULL
    return np.where(valid, slots_of(codes), without).astype(np.int16)


def slots_of(codes: npt.NDArray[np.int64]) -> Slots:
    """Deal rows to slots by their key codes.

    Every row that goes to a lane, a node or a partition by its key goes there by this function, on every host.
    """
    return (hash_words(codes) & (SLOTS - 1)).astype(np.int16)


def _classes(query: Query) -> list[tuple[Expression, ...]]:
    # An aggregate over one source has no equalities: its groups are classes of their own.
    classes = [c.members for c in key_classes(query)]
    if query.groups and len(query.sources) == 1:
        classes += [(group,) for group in query.groups if len(group.aliases()) == 1 and not asks_user(group)]
    return classes


def _groups_by(query: Query, members: tuple[Expression, ...]) -> bool:
    # Every group of an aggregate must stay within one lane.
    if query.groups is None:
        return True
    texts = {e.text() for e in members}
    return any(g.text() in texts for g in query.groups)


def _by_stream(query: Query, by_alias: dict[str, Expression]) -> dict[str, Expression] | None:
    chosen: dict[str, Expression] = {}
    for source in query.sources:
        expression = relabel(by_alias[source.alias], {source.alias: source.stream})
        if chosen.setdefault(source.stream, expression).text() != expression.text():
            return None
    return chosen
