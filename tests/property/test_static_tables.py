"""Rows looked up in static tables, which are refreshed between steps, are those that DuckDB finds in the versions.

DuckDB has all versions of a table at once, each row with the steps it stood in, and joins a row of a stream with those
of its own step. Queries run in lanes, share, and are migrated on the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from midstream import Engine
from tests.drawing import drawing
from tests.duck import database

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

STREAM = pa.schema([("k", pa.int64()), ("v", pa.float64()), ("s", pa.string()), ("ts", pa.timestamp("us"))])
TABLE = pa.schema([("k", pa.int64()), ("w", pa.int64()), ("name", pa.string())])
LAST = 99
"""The key of the rows that end the run: so late that all windows are over."""

STANDS = "({a}.__step >= {r}.__from AND {a}.__step < {r}.__to)"


@dataclass(frozen=True)
class Form:
    """A query's text, what DuckDB is asked, and whether its plan is changed on the way."""

    text: str
    sql: str
    moves: bool = False


def stands(a: str, r: str) -> str:
    return STANDS.format(a=a, r=r)


def near(*aliases: str) -> str:
    """That rows are within 5 seconds of each other."""
    times = ", ".join(f"{alias}.ts" for alias in aliases)
    return f"(greatest({times}) - least({times}) <= INTERVAL 5 SECONDS)"


def latest(on: str) -> str:
    """The row of R with the greatest `w` of those that stand and match."""
    return f"LATERAL (SELECT * FROM R r WHERE {on} AND {stands('a', 'r')} ORDER BY w DESC LIMIT 1) AS r"


W = "[RANGE 5 SECONDS]"
SEEN = stands("a", "r")
BY_SECONDS = "INTERVAL 4 SECONDS"
FORMS = {
    "inner": Form(
        "SELECT a.k, a.v * r.w AS x, r._version AS version FROM A a JOIN R r ON a.k = r.k WHERE r.w > 0",
        f"SELECT a.k, a.v * r.w AS x, r._version FROM A a JOIN R r ON a.k = r.k AND {SEEN} WHERE r.w > 0",
    ),
    "comma, the table first": Form(
        "SELECT * FROM R r, A a WHERE a.k = r.k AND a.v > 0",
        f"SELECT r.k, r.w, r.name, a.k, a.v, a.s, a.ts FROM R r, A a WHERE a.k = r.k AND a.v > 0 AND {SEEN}",
    ),
    "left": Form(
        "SELECT a.s, r.name, r._version AS version FROM A a LEFT JOIN R r ON a.k = r.k AND r.w > a.k",
        f"SELECT a.s, r.name, r._version FROM A a LEFT JOIN R r ON a.k = r.k AND r.w > a.k AND {SEEN}",
    ),
    "left, filtered": Form(
        "SELECT a.k, coalesce(r.w, -7) AS w FROM A a LEFT JOIN R r USING (k) WHERE r.w IS NULL OR r.w < 2",
        "SELECT a.k, coalesce(r.w, -7) AS w FROM A a "
        f"LEFT JOIN R r ON a.k = r.k AND {SEEN} WHERE r.w IS NULL OR r.w < 2",
    ),
    "by a text and a number": Form(
        "SELECT a.k, r.w FROM A a JOIN R r ON a.s = r.name AND a.k = r.k",
        f"SELECT a.k, r.w FROM A a JOIN R r ON a.s = r.name AND a.k = r.k AND {SEEN}",
    ),
    "by an expression": Form(
        "SELECT a.k, r.w FROM A a JOIN R r ON a.k % 2 = r.k - 1",
        f"SELECT a.k, r.w FROM A a JOIN R r ON a.k % 2 = r.k - 1 AND {SEEN}",
    ),
    "by no equality": Form(
        "SELECT a.k, r.w FROM A a JOIN R r ON a.k < r.k OR r.name = a.s",
        f"SELECT a.k, r.w FROM A a JOIN R r ON (a.k < r.k OR r.name = a.s) AND {SEEN}",
    ),
    "exists": Form(
        "SELECT a.k, a.v FROM A a WHERE EXISTS (SELECT 1 FROM R WHERE R.k = a.k AND R.w > 0) AND a.k > 0",
        f"SELECT a.k, a.v FROM A a WHERE EXISTS (SELECT 1 FROM R r WHERE r.k = a.k AND r.w > 0 AND {SEEN}) AND a.k > 0",
    ),
    "not exists": Form(
        "SELECT a.k, a.v FROM A a WHERE NOT EXISTS (SELECT 1 FROM R WHERE R.k = a.k)",
        f"SELECT a.k, a.v FROM A a WHERE NOT EXISTS (SELECT 1 FROM R r WHERE r.k = a.k AND {SEEN})",
    ),
    "not in": Form(
        "SELECT a.k, a.v FROM A a WHERE a.k NOT IN (SELECT w FROM R)",
        f"SELECT a.k, a.v FROM A a WHERE a.k NOT IN (SELECT w FROM R r WHERE {SEEN})",
    ),
    "two tables in a chain": Form(
        "SELECT a.k, r.w, t.name FROM A a JOIN R r ON a.k = r.k LEFT JOIN T t ON t.k = r.w",
        "SELECT a.k, r.w, t.name FROM A a "
        f"JOIN R r ON a.k = r.k AND {SEEN} LEFT JOIN T t ON t.k = r.w AND {stands('a', 't')}",
    ),
    "a subquery over the table": Form(
        "SELECT a.k, x.double FROM A a JOIN (SELECT k, w * 2 AS double FROM R WHERE w > 0) x ON a.k = x.k",
        f"SELECT a.k, r.w * 2 FROM A a JOIN R r ON a.k = r.k AND r.w > 0 AND {SEEN}",
    ),
    "a subquery over the stream": Form(
        "SELECT x.j, r.w FROM (SELECT k + 1 AS j FROM A WHERE v > 0) x JOIN R r ON x.j = r.k",
        f"SELECT a.k + 1, r.w FROM A a JOIN R r ON a.k + 1 = r.k AND a.v > 0 AND {SEEN}",
    ),
    "as of": Form(
        "SELECT a.k, r.w, r._version AS version FROM A a ASOF JOIN R r ON r.name = a.s AND a.k >= r.w WHERE r.w <> 1",
        f"SELECT a.k, r.w, r._version FROM A a, {latest('r.name = a.s AND r.w <= a.k')} WHERE r.w <> 1",
    ),
    "as of, left, of a subquery, by less": Form(
        "SELECT a.k, r.x FROM A a ASOF LEFT JOIN (SELECT name, w + 1 AS x FROM R WHERE k > 0) r "
        "MATCH_CONDITION (r.x < a.k) ON r.name = a.s",
        f"SELECT a.k, r.w + 1 FROM A a LEFT JOIN {latest('r.name = a.s AND r.w + 1 < a.k AND r.k > 0')} ON true",
    ),
    "as of, beside three streams": Form(
        f"SELECT a.k, b.v, c.s, r.w FROM A {W} a JOIN B {W} b ON a.k = b.k JOIN C {W} c ON c.k = b.k "
        "ASOF JOIN R r ON r.name = a.s AND a.k >= r.w WHERE r.w < b.v",
        f"SELECT a.k, b.v, c.s, r.w FROM A a, B b, C c, {latest('r.name = a.s AND r.w <= a.k')} "
        f"WHERE a.k = b.k AND c.k = b.k AND r.w < b.v AND {near('a', 'b', 'c')}",
        moves=True,
    ),
    "as of, without equality, grouped": Form(
        f"SELECT r.w, COUNT(*) AS n FROM A a ASOF LEFT JOIN R r ON a.k > r.w GROUP BY r.w, TUMBLE(a.ts, {BY_SECONDS})",
        f"SELECT r.w, COUNT(*) AS n FROM A a LEFT JOIN {latest('r.w < a.k')} ON true "
        f"GROUP BY r.w, time_bucket({BY_SECONDS}, a.ts)",
    ),
    "joined with a stream": Form(
        f"SELECT a.k, b.v, r.w FROM A {W} a, B {W} b, R r WHERE a.k = b.k AND r.k = a.k AND r.w < b.v",
        f"SELECT a.k, b.v, r.w FROM A a, B b, R r WHERE a.k = b.k AND r.k = a.k AND r.w < b.v AND {SEEN} "
        f"AND {near('a', 'b')}",
    ),
    "three streams and two tables": Form(
        f"SELECT a.v, b.v AS bv, c.s, r.name, t.w FROM A {W} a, B {W} b, C {W} c, R r, T t "
        "WHERE a.k = b.k AND b.k = c.k AND r.k = a.k AND t.k = c.k",
        "SELECT a.v, b.v AS bv, c.s, r.name, t.w FROM A a, B b, C c, R r, T t WHERE a.k = b.k AND b.k = c.k "
        f"AND r.k = a.k AND t.k = c.k AND {SEEN} AND {stands('c', 't')} AND {near('a', 'b', 'c')}",
        moves=True,
    ),
    "three streams joined by way of a table": Form(
        f"SELECT a.v, b.v AS bv, c.v AS cv FROM A {W} a JOIN R r ON r.k = a.k JOIN B {W} b ON b.k = r.w "
        f"JOIN C {W} c ON c.k = b.k",
        "SELECT a.v, b.v AS bv, c.v AS cv FROM A a, B b, C c, R r WHERE r.k = a.k AND b.k = r.w AND c.k = b.k "
        f"AND {SEEN} AND {near('a', 'b', 'c')}",
        moves=True,
    ),
    "ON also reads another stream": Form(
        f"SELECT a.k, b.v, r.w FROM A {W} a JOIN B {W} b ON a.k = b.k JOIN R r ON r.k = a.k AND r.w < b.v",
        f"SELECT a.k, b.v, r.w FROM A a, B b, R r WHERE a.k = b.k AND r.k = a.k AND r.w < b.v AND {SEEN} "
        f"AND {near('a', 'b')}",
    ),
    "beside an outer join": Form(
        f"SELECT a.k, r.w, b.v FROM A {W} a JOIN R r ON r.k = a.k LEFT JOIN B {W} b ON b.k = a.k AND b.v > r.w",
        f"SELECT a.k, r.w, b.v FROM (SELECT a.*, r.w FROM A a JOIN R r ON r.k = a.k AND {SEEN}) a, (SELECT 1) r "
        f"LEFT JOIN B b ON b.k = a.k AND b.v > a.w AND {near('a', 'b')}".replace("r.w, b.v FROM", "a.w, b.v FROM"),
    ),
    "the padded side looks up": Form(
        f"SELECT a.k, b.v, r.name FROM A {W} a LEFT JOIN B {W} b ON b.k = a.k LEFT JOIN R r ON r.k = b.k",
        "SELECT a.k, b.v, b.name FROM A a LEFT JOIN "
        f"(SELECT a.*, r.name FROM B a LEFT JOIN R r ON r.k = a.k AND {SEEN}) b ON b.k = a.k AND {near('a', 'b')}",
    ),
    "grouped": Form(
        f"SELECT r.name, COUNT(*) AS n, SUM(r.w) AS w FROM A a JOIN R r ON a.k = r.k GROUP BY r.name, "
        f"TUMBLE(a.ts, {BY_SECONDS})",
        f"SELECT r.name, COUNT(*) AS n, SUM(r.w)::BIGINT AS w FROM A a JOIN R r ON a.k = r.k AND {SEEN} "
        f"GROUP BY r.name, time_bucket({BY_SECONDS}, a.ts)",
    ),
    "grouped, what is not found too": Form(
        f"SELECT a.k, COUNT(r.k) AS n FROM A a LEFT JOIN R r ON a.k = r.k GROUP BY a.k, TUMBLE(a.ts, {BY_SECONDS})",
        f"SELECT a.k, COUNT(r.k) AS n FROM A a LEFT JOIN R r ON a.k = r.k AND {SEEN} "
        f"GROUP BY a.k, time_bucket({BY_SECONDS}, a.ts)",
    ),
    "WITH": Form(
        "WITH found AS (SELECT a.k AS key, r.w AS weight, a.ts AS t FROM A a JOIN R r ON a.k = r.k) "
        f"SELECT key, MAX(weight) AS most FROM found GROUP BY key, TUMBLE(t, {BY_SECONDS})",
        f"SELECT a.k, MAX(r.w) AS most FROM A a JOIN R r ON a.k = r.k AND {SEEN} "
        f"GROUP BY a.k, time_bucket({BY_SECONDS}, a.ts)",
    ),
}


@dataclass
class Case:
    """What comes in each step, which tables are set before it, and when the plan changes."""

    steps: list[dict[str, list[tuple[int | None, float | None, str | None, int]]]] = field(default_factory=list)
    tables: list[dict[str, list[tuple[int | None, int | None, str | None]]]] = field(default_factory=list)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    keys = st.sampled_from([0, 1, 1, 2, 2, 3, None])
    names = st.sampled_from(["x", "y", "", None])
    numbers = st.sampled_from([-1.0, 0.0, 1.0, 2.0, float("nan"), None])
    record = st.tuples(keys, st.sampled_from([-1, 0, 1, 2, 3, None]), names)
    case, now = Case(), 0
    for number in range(draw(st.integers(1, 4))):
        brought: dict[str, list[tuple[int | None, float | None, str | None, int]]] = {}
        latest = now
        for stream in "ABC":
            times = sorted(now + draw(st.integers(0, 4)) for _ in range(draw(st.integers(0, 6))))
            brought[stream] = [(draw(keys), draw(numbers), draw(names), second) for second in times]
            latest = max([latest, *times])
        case.steps.append(brought)
        now = latest
        which = "RT" if not number else draw(st.sampled_from(["", "", "R", "T", "RT"]))
        case.tables.append({name: [draw(record) for _ in range(draw(st.integers(0, 6)))] for name in which})
    return case


@pytest.mark.parametrize("name", FORMS)
@drawing(-(-200 // len(FORMS)))
@given(st.data())
def test_a_row_meets_the_version_of_its_step(name: str, data: st.DataObject) -> None:
    form, case = FORMS[name], data.draw(cases())
    lanes, sharing = data.draw(st.integers(1, 3)), data.draw(st.sampled_from(["auto", "off", "cpu_opt"]))
    moved = data.draw(st.integers(0, len(case.steps))) if form.moves else None
    assert answered(form, case, lanes, sharing, moved, data) == expected(form, case)


def answered(form: Form, case: Case, lanes: int, sharing: str, moved: int | None, data: st.DataObject) -> Counter[Any]:
    """What the engine answers over all steps."""
    engine = Engine(lanes=lanes, sharing=sharing)
    for stream in "ABC":
        engine.create_stream(stream, STREAM, timestamp="ts")
    found: Counter[Any] = Counter()
    for number, (brought, refreshed) in enumerate(zip(case.steps, case.tables, strict=True)):
        for table, records in refreshed.items():
            engine.table(table, arrow(records, TABLE))
        if not number:
            engine.add_query("q", form.text)
            engine.add_query("again", form.text)  # Shares the parts, and what else it may.
        if number == moved:
            strategy = data.draw(st.sampled_from(["moving_state", "parallel_track", "jisc", "hybmig", "gms"]))
            engine.migrate("q", "(a (b c))", strategy)
        results = engine.push({stream: rows(values) for stream, values in brought.items()})
        found += counted(results["q"])
    last = engine.push({stream: rows([(LAST, 0.0, "last", 10_000)]) for stream in "ABC"})
    return found + counted(last["q"])


def expected(form: Form, case: Case) -> Counter[Any]:
    """What DuckDB answers over the whole run."""
    connection = database()
    connection.execute("SET TimeZone = 'UTC'")
    for stream in "ABC":
        parts = [
            rows(given[stream]).append_column("__step", pa.array([number] * len(given[stream]), pa.int64()))
            for number, given in enumerate(case.steps)
        ]
        connection.register(stream, pa.concat_tables(parts))
    for table in "RT":
        set_at = [number for number, tables in enumerate(case.tables) if table in tables]
        versions, former, version = [], None, 0
        for at, until in zip(set_at, [*set_at[1:], len(case.steps)], strict=True):
            records = arrow(case.tables[at][table], TABLE)
            version += former is None or not records.equals(former)
            former = records
            for title, value in (("_version", version), ("__from", at), ("__to", until)):
                records = records.append_column(title, pa.array([value] * len(records), pa.int64()))
            versions.append(records)
        connection.register(table, pa.concat_tables(versions))
    return counted(connection.sql(form.sql).to_arrow_table())


def counted(table: pa.Table) -> Counter[Any]:
    """The rows as a multiset, NaN equal to itself; those that end the run are left out."""
    found: Counter[Any] = Counter()
    for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
        if LAST not in row and "last" not in row:
            found[tuple("nan" if value != value else value for value in row)] += 1
    return found


def rows(values: list[tuple[int | None, float | None, str | None, int]]) -> pa.Table:
    """Rows of a stream; times are seconds."""
    return arrow([(k, v, s, second * 1_000_000) for k, v, s, second in values], STREAM)


def arrow(records: list[Any], schema: pa.Schema) -> pa.Table:
    arrays = [pa.array([record[at] for record in records], one.type) for at, one in enumerate(schema)]
    return pa.Table.from_arrays(arrays, schema=schema)
