"""Lane keys: which queries spread, by what, and that equal keys meet in one slot."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from midstream.expr.expression import Column
from midstream.plan.signature import canonical
from midstream.runtime.lane_key import SINGLE, SLOTS, group_name, lane_key, slots
from tests.unit.building import query, table


def keys(sql: str) -> dict[str, str] | None:
    found = lane_key(canonical(query(sql))[0])
    return None if found is None else {stream: e.text() for stream, e in sorted(found.items())}


W = "WINDOW 5 SECONDS"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT A.k FROM A, B WHERE A.k = B.j {W}", {"A": "A.k", "B": "B.j"}),
        (f"SELECT x.k FROM A x, B y WHERE x.k = y.j {W}", {"A": "A.k", "B": "B.j"}),
        (f"SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k {W}", {"A": "A.k", "B": "B.k", "C": "C.k"}),
        (f"SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.j = C.j {W}", None),
        (f"SELECT A.k FROM A, B WHERE A.v < B.v {W}", None),
        (f"SELECT A.k FROM A, B WHERE A.k = B.k OR A.j = B.j {W}", None),
        (f"SELECT A.k FROM A, B WHERE A.k + 1 = B.k {W}", {"A": "try_cast(add(A.k, 1::int64))::int64", "B": "B.k"}),
        (f"SELECT x.k FROM A x, A y WHERE x.k = y.k {W}", {"A": "A.k"}),
        (f"SELECT x.k FROM A x, A y WHERE x.k = y.j {W}", None),
        ("SELECT A.k FROM A", None),
        ("SELECT A.k FROM A [ROWS 3], B [ROWS 3] WHERE A.k = B.k", {"A": "A.k", "B": "B.k"}),
        # Aggregates: every group stays in one lane.
        ("SELECT A.k, COUNT(*) FROM A [RANGE 5 SECONDS] GROUP BY A.k EVERY 1 SECOND", {"A": "A.k"}),
        ("SELECT A.k, COUNT(*) FROM A [RANGE 5 SECONDS] GROUP BY A.s, A.k EVERY 1 SECOND", {"A": "A.s"}),
        ("SELECT COUNT(*) FROM A [RANGE 5 SECONDS] EVERY 1 SECOND", None),
        (f"SELECT A.k, COUNT(*) FROM A, B WHERE A.k = B.k GROUP BY A.k {W} EVERY 1 SECOND", {"A": "A.k", "B": "B.k"}),
        (f"SELECT B.k, COUNT(*) FROM A, B WHERE A.k = B.k GROUP BY B.k {W} EVERY 1 SECOND", {"A": "A.k", "B": "B.k"}),
        (f"SELECT A.j, COUNT(*) FROM A, B WHERE A.k = B.k GROUP BY A.j {W} EVERY 1 SECOND", None),
        (f"SELECT COUNT(*) FROM A, B WHERE A.k = B.k {W} EVERY 1 SECOND", None),
        ("SELECT A.k, COUNT(*) FROM A [ROWS 5] GROUP BY A.k EVERY 1 SECOND", None),
        ("SELECT A.k FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [RANGE 5 SECONDS]", {"A": "A.k", "B": "B.k"}),
        ("SELECT A.k FROM A [RANGE 5 SECONDS] EXCEPT ON (k) B [ROWS 5]", None),
    ],
)
def test_what_rows_are_spread_by(sql: str, expected: dict[str, str] | None) -> None:
    assert keys(sql) == expected


def group(sql: str) -> str:
    return group_name(lane_key(canonical(query(sql))[0]))


def test_queries_of_one_key_share_a_group() -> None:
    one = group(f"SELECT A.k FROM A, B WHERE A.k = B.k {W}")
    assert one == group("SELECT y.v FROM B [ROWS 2] y, A [RANGE 1 DAY] x WHERE y.k = x.k AND x.v > 3")
    assert one != group(f"SELECT A.k FROM A, B WHERE A.k = B.j {W}")
    assert one != group(f"SELECT A.k FROM A, C WHERE A.k = C.k {W}")
    assert one != group(f"SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k {W}")
    assert group(f"SELECT A.k FROM A, B WHERE A.v < B.v {W}") == SINGLE == group_name(None)


def of(values: pa.Array, *, spread_nulls: bool = True) -> list[int]:
    batch = pa.RecordBatch.from_pydict({"x": values, "_ts": pa.array(range(len(values)), pa.int64())})
    column = Column(values.type, "A", "x")
    key = {"A": column, "B": column} if spread_nulls else {"A": column}
    return list(slots(key, "A", batch).tolist())


def test_equal_keys_meet_whatever_their_row() -> None:
    assert len(set(of(pa.array([7] * 50)))) == 1
    assert of(pa.array([1, 2, 3])) == of(pa.array([3, 2, 1]))[::-1]
    assert of(pa.array(["a", "b"]))[0] == of(pa.array(["x", "a"]))[1]
    assert len(set(of(pa.array([0.0, -0.0])))) == 1
    assert len(set(of(pa.array([float("nan"), -float("nan")])))) == 1


def test_slots_fill_evenly() -> None:
    found = np.array(of(pa.array(range(40_960))))
    assert found.min() >= 0
    assert found.max() < SLOTS
    for lanes in (2, 3, 7, 64):
        sizes = np.bincount(found % lanes, minlength=lanes)
        assert sizes.min() > 0.7 * len(found) / lanes, lanes


def test_null_keys_join_nothing_and_are_spread_but_a_group_of_nulls_stays_together() -> None:
    nothing = pa.nulls(100, pa.int64())
    assert len(set(of(nothing))) > 90
    assert of(nothing) == of(nothing)
    assert len(set(of(nothing, spread_nulls=False))) == 1


def test_slots_of_an_expression() -> None:
    key = lane_key(canonical(query(f"SELECT A.k FROM A, B WHERE A.k + 1 = B.k {W}"))[0])
    assert key is not None
    (batch,) = table([1, 2], k=[4, 5]).to_batches()
    (shifted,) = table([1, 2], k=[5, 6]).to_batches()
    one, other = slots(key, "A", batch), slots(key, "B", shifted)
    assert one.tolist() == other.tolist()
    assert one.dtype == np.int16
