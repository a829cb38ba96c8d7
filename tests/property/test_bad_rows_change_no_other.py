"""Invariant 6: late and bad rows change no other row's results, stop nothing, and are all accounted for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from tests.drawing import drawing
from tests.oracle.arrival import Step, arrive, microseconds
from tests.oracle.compare import normal
from tests.oracle.spec import StreamSpec
from tests.property.cases import cases, migrations
from tests.property.drive import check
from tests.property.queries import plans

pytestmark = pytest.mark.property

UNREADABLE = {
    "ts": ("null", "rubbish", "2023-13-45 00:00:00", ""),
    "k": ("many", "1.5e", ""),
    "n": (2**40, -(2**31) - 1),
}
"""What a bad row holds in one column: no time, text that is none, numbers that do not fit."""


@drawing(100, soak=20, shrink=True)
@given(st.data())
def test_bad_rows_change_no_answer(data: st.DataObject) -> None:
    drawn = data.draw(cases(order=data.draw(st.sampled_from(("any", "late", "late"))), idle=True))
    rng = Random(data.draw(st.integers(0, 2**16), label="seed of bad rows"))
    spoilt: list[Step] = []
    bad: dict[str, list[int]] = {spec.name: [] for spec in drawn.case.streams}
    for number, step in enumerate(drawn.case.steps):
        pushed = dict(step)
        for spec in drawn.case.streams:
            if rng.random() < 0.5:
                rows = pushed.get(spec.name, spec.schema.empty_table())
                ids = [-1000 * (number + 1) - place for place in range(rng.randrange(1, 4))]
                pushed[spec.name] = spoil(rng, spec, rows, ids)
                bad[spec.name] += ids
        spoilt.append(pushed)
    case = replace(drawn.case, steps=tuple(spoilt))
    actions = data.draw(migrations(drawn.case, 1)) if data.draw(st.booleans()) else ()
    plan = {"q0": data.draw(plans(drawn.spec()), label="plan")}
    found = check(case, drawn.expected, plan, actions, lanes=data.draw(st.sampled_from((1, 3))))
    arrivals = arrive(drawn.case.streams, drawn.case.steps, drawn.case.queries)
    for spec in drawn.case.streams:
        late = arrivals.late[spec.name]
        event("late rows" if late.num_rows else "none late")
        expected = Counter(zip(late["u"].to_pylist(), late["_watermark"].to_pylist(), strict=True))
        assert Counter(late_rows(found.engine.late.get(spec.name))) == expected
        assert dead_ids(found.engine.dead_letters.get(spec.name)) == sorted(bad[spec.name])


def spoil(rng: Random, spec: StreamSpec, rows: pa.Table, ids: list[int]) -> pa.Table:
    """The rows with bad ones among them; all of a table's bad rows are bad in one column."""
    column = rng.choice(list(UNREADABLE))
    if column == "ts" and rng.random() < 0.5:
        column = "null"
    values: list[dict[str, Any]] = rows.to_pylist()
    for number in ids:
        row: dict[str, Any] = dict.fromkeys(spec.schema.names)
        values.insert(rng.randrange(len(values) + 1), {**row, "u": number, "k": 1, "s": "a"})
    schema = spec.schema
    if column == "null":
        return pa.Table.from_pylist(values, schema=schema)
    good_time = microseconds(rows["ts"]).to_pylist()
    good = dict(zip(rows["u"].to_pylist(), good_time, strict=True))
    for row in values:
        is_bad = row["u"] in ids
        if column == "ts":
            row["ts"] = rng.choice(UNREADABLE["ts"]) if is_bad else written(good[row["u"]], schema.field("ts").type)
            row["ts"] = None if row["ts"] == "null" else row["ts"]
        elif is_bad:
            row["ts"] = rows["ts"][0].as_py() if rows.num_rows else None
            row[column] = rng.choice(UNREADABLE[column])
        elif column == "k" and row["k"] is not None:
            row["k"] = str(row["k"])
    kind = pa.int64() if column == "n" else pa.string()
    place = schema.get_field_index(column)
    return pa.Table.from_pylist(values, schema=schema.set(place, pa.field(column, kind)))


def written(time: int, type_: pa.DataType) -> str:
    """A time in microseconds as text that can be read as the type."""
    if pa.types.is_integer(type_):
        return str(time)
    text = str(pa.scalar(time, pa.timestamp("us")).as_py())
    return f"{text}Z" if type_.tz else text


def late_rows(table: pa.Table | None) -> list[tuple[int, int]]:
    """The ids of late rows and the watermarks they missed."""
    if table is None:
        return []
    return list(zip(table["u"].to_pylist(), microseconds(table["_watermark"]).to_pylist(), strict=True))


def dead_ids(table: pa.Table | None) -> list[int]:
    """The ids of rejected rows, each of which has a reason."""
    if table is None or not table.num_rows:
        return []
    assert pc.all(pc.greater(pc.utf8_length(table["_reason"]), 0)).as_py()
    return sorted(int(normal(value)) for value in table["u"].to_pylist())
