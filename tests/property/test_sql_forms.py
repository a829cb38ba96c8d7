"""Forms of SQL that are written as others before they run: each answers as DuckDB does over all rows at once.

A seed draws rows of three streams, cuts them into steps, and asks a query of every form beside each other. What a query
must answer is one text of DuckDB over the rows that were not late. Two rows far ahead end every window.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.logical.query import query_of
from tests.drawing import SOAK
from tests.oracle.answer import connection
from tests.oracle.arrival import Step, arrive
from tests.oracle.spec import SECOND, StreamSpec
from tests.property.drive import restarted, start
from tests.property.rows import BEGIN, Shape, cut, draw_rows, table

pytestmark = [pytest.mark.property, pytest.mark.timeout(600)]

Form = Callable[[Random], tuple[str, str]]

FORMS: dict[str, Form] = {}
"""By name what draws a query, as midstream gets it and as DuckDB does."""

ENDING = -7
"""The `u` of rows that only end the windows; answers that have it are passed over."""


def form(draw: Form) -> Form:
    FORMS[draw.__name__] = draw
    return draw


def within(rng: Random) -> tuple[str, str]:
    """A window of some seconds, and that A and B are in it."""
    size = rng.choice((0, 1, 3, 5))
    return f" WINDOW {size} SECONDS", f"abs(A.__ts - B.__ts) <= {size} * {SECOND}"


ITEMS = "A.u AS u, B.u AS w"


@form
def offset_equality(rng: Random) -> tuple[str, str]:
    seconds = rng.choice((0, 1, 2, 7))
    tie = rng.choice(("A.k = B.k", "A.s <> B.s", "TRUE"))
    written = rng.choice(
        (
            f"B.ts = A.ts + INTERVAL {seconds} SECONDS",
            f"B.ts - INTERVAL {seconds} SECONDS = A.ts",
            f"A.ts + INTERVAL {seconds} SECONDS = B.ts AND A.ts <= B.ts",
        )
    )
    return (text := f"SELECT {ITEMS} FROM A, B WHERE {tie} AND {written}"), text


@form
def truncated_equality(rng: Random) -> tuple[str, str]:
    unit = rng.choice(("second", "minute", "hour", "day", "week", "month"))
    shift = rng.choice(("", " + INTERVAL 3 SECONDS", " - INTERVAL 1 MINUTE"))
    cut = f"DATE_TRUNC('{unit}', A.ts) = DATE_TRUNC('{unit}', B.ts{shift})"
    written = rng.choice((cut, "CAST(A.ts AS DATE) = CAST(B.ts AS DATE)", f"DATE_TRUNC('{unit}', A.ts) = B.ts{shift}"))
    return (text := f"SELECT {ITEMS} FROM A, B WHERE A.k = B.k AND {written}"), text


@form
def joined_by_name(rng: Random) -> tuple[str, str]:
    (window, inside), kind = within(rng), rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    names = rng.choice((("k",), ("k", "s"), ("s",)))
    using, rest = ", ".join(names), ", ".join(f"{name} AS g{n}" for n, name in enumerate(names))
    both = {"RIGHT JOIN": "B.{0}", "FULL JOIN": "COALESCE(A.{0}, B.{0})"}.get(kind, "A.{0}")
    items = ", ".join(f"{both.format(name)} AS g{n}" for n, name in enumerate(names))
    on = " AND ".join(f"A.{name} = B.{name}" for name in names)
    where = rng.choice(("", " WHERE {0} IS NOT NULL", " WHERE {0} IS NULL OR A.u IS NULL"))
    cql = f"SELECT {rest}, {ITEMS} FROM A {kind} B USING ({using}){where.format(names[0])}{window}"
    after = where.format(both.format(names[0]))
    return cql, f"SELECT {items}, {ITEMS} FROM A {kind} B ON {on} AND {inside}{after}"


@form
def joined_by_all_names(rng: Random) -> tuple[str, str]:
    kind = rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    (window, inside), told = within(rng), (("A", "u", "t"), ("B", "w", "z"))
    ours = [f"(SELECT k, s, u AS {u}, ts AS {t} FROM {name}) AS {name}" for name, u, t in told]
    cql = f"SELECT * FROM {ours[0]} NATURAL {kind} {ours[1]}{window}"
    both = {"RIGHT JOIN": "B.{0}", "FULL JOIN": "COALESCE(A.{0}, B.{0})"}.get(kind, "A.{0}")
    items = ", ".join(f"{both.format(name)} AS {name}" for name in "ks")
    items += ", A.u AS u, A.ts AS t, B.u AS w, B.ts AS z"
    return cql, f"SELECT {items} FROM A {kind} B ON A.k = B.k AND A.s = B.s AND {inside}"


@form
def row_values(rng: Random) -> tuple[str, str]:
    window, inside = within(rng)
    cql, sql = rng.choice(
        (
            ("(A.k, A.s) = (B.k, B.s)", "A.k = B.k AND A.s = B.s"),
            ("(A.k, A.n) <> (B.k, B.n)", "A.k <> B.k OR A.n <> B.n"),
            ("(A.k, A.n) < (B.k, B.n)", "A.k < B.k OR (A.k = B.k AND A.n < B.n)"),
            ("(A.k, A.n) >= (B.k, B.n)", "A.k > B.k OR (A.k = B.k AND A.n >= B.n)"),
            ("(A.k, B.n) IN ((1, 2), (0, B.k))", "(A.k = 1 AND B.n = 2) OR (A.k = 0 AND B.n = B.k)"),
            ("(A.k, B.n) NOT IN ((1, 2), (0, 1))", "NOT ((A.k = 1 AND B.n = 2) OR (A.k = 0 AND B.n = 1))"),
        )
    )
    return f"SELECT {ITEMS} FROM A, B WHERE {cql}{window}", f"SELECT {ITEMS} FROM A, B WHERE ({sql}) AND {inside}"


@form
def row_values_in_a_subquery(rng: Random) -> tuple[str, str]:
    (window, inside), negated = within(rng), rng.choice(("", "NOT "))
    cql = f"SELECT A.u AS u FROM A WHERE (A.k, A.s) {negated}IN (SELECT B.k, s FROM B WHERE B.n > 0){window}"
    true = "A.k = B.k AND A.s = B.s"
    held = f"coalesce({true}, true)" if negated else true
    return cql, f"SELECT A.u FROM A WHERE {negated}EXISTS (SELECT 1 FROM B WHERE B.n > 0 AND {held} AND {inside})"


COLUMNS = "k, n, s, d, m, day, ok, u"


def one_of_each(source: str, keys: str, where: str = "", columns: str = COLUMNS) -> str:
    """The rows of a source, one of each key and time: the first in order of the columns."""
    rank = f"row_number() OVER (PARTITION BY {keys}, __ts ORDER BY {columns})"
    return f"(SELECT * FROM {source}{where} QUALIFY {rank} = 1)"


@form
def as_of(rng: Random) -> tuple[str, str]:
    size, left, sign = rng.choice((0, 1, 3, 8)), rng.choice(("", "LEFT ")), rng.choice((">=", ">"))
    keys = rng.choice((("k",), ("k", "s"), ("s",)))
    on = " AND ".join(f"A.{key} = B.{key}" for key in keys)
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    where, after = rng.choice((("", ""), (" WHERE A.n > 0", " WHERE n > 0")))
    written = [
        f"A ASOF {left}JOIN B{window} ON {on} AND A.ts {sign} B.ts",
        f"A ASOF {left}JOIN B{window} ON B.ts {'<' if sign == '>' else '<='} A.ts AND {on}",
        f"A ASOF {left}JOIN B{window} MATCH_CONDITION (A.ts {sign} B.ts) ON {on}",
    ]
    if sign == ">=":
        written.append(f"A {left}JOIN B{window} FOR SYSTEM_TIME AS OF A.ts ON {on}")
        written.append(f"A ASOF {left}JOIN B{window} USING ({', '.join(keys)}, ts)")
    cql = f"SELECT {ITEMS} FROM {rng.choice(written)}{where}{whole}"
    found = f"SELECT A.u AS u, CASE WHEN A.__ts - B.__ts <= {size} * {SECOND} THEN B.u END AS w, A.n AS n"
    found += f" FROM A ASOF LEFT JOIN {one_of_each('B', ', '.join(keys))} AS B ON {on} AND A.ts {sign} B.ts"
    kept = " WHERE w IS NOT NULL" if not left else ""
    return cql, f"SELECT u, w FROM (SELECT u, w, n FROM ({found}){kept}){after}"


@form
def lateral(rng: Random) -> tuple[str, str]:
    size, left, sign = rng.choice((0, 1, 3, 8)), rng.choice(("", "LEFT ")), rng.choice(("<=", "<"))
    keys = rng.choice((("k",), ("k", "s"), ("s",)))
    listed, item = rng.choice((("u", "x.u"), ("b.u AS w", "x.w"), ("*", "x.u"), ("k, u, ts", "x.u")))
    on = " AND ".join(rng.choice((f"b.{key} = A.{key}", f"A.{key} = b.{key}")) for key in keys)
    later = rng.choice((f"b.ts {sign} A.ts", f"A.ts {'>=' if sign == '<=' else '>'} b.ts"))
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    where, kept = rng.choice((("", ""), (" AND b.n > 0", " WHERE n > 0")))
    inner = f"(SELECT {listed} FROM B{window} AS b WHERE {on} AND {later}{where} ORDER BY b.ts DESC LIMIT 1) AS x"
    joins = (f"LEFT JOIN LATERAL {inner} ON TRUE",)
    joins = joins if left else (f"JOIN LATERAL {inner} ON TRUE", f", LATERAL {inner}", f"CROSS JOIN LATERAL {inner}")
    cql = f"SELECT A.u AS u, {item} AS w FROM A {rng.choice(joins)}{whole}"
    ties = " AND ".join(f"A.{key} = B.{key}" for key in keys)
    found = f"SELECT A.u AS u, CASE WHEN A.__ts - B.__ts <= {size} * {SECOND} THEN B.u END AS w FROM A ASOF LEFT JOIN "
    ordered = {"*": COLUMNS, "k, u, ts": "k, u"}.get(listed, "u")  # Ties are in the order of what LATERAL selects.
    found += f"{one_of_each('B', ', '.join(keys), kept, ordered)} AS B ON {ties} AND B.ts {sign} A.ts"
    return cql, f"SELECT u, w FROM ({found}){'' if left else ' WHERE w IS NOT NULL'}"


@form
def first_rows(rng: Random) -> tuple[str, str]:
    size, keys = rng.choice((0, 1, 3, 8)), rng.choice(("k", "k, s", "d"))
    last, where = rng.choice(("", " DESC")), rng.choice(("", " WHERE n > 0"))
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    rank = f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY ts{last}) = 1"
    order = f" ORDER BY {keys}, ts{last}" if last or rng.random() < 0.5 else ""
    cql = rng.choice(
        (
            f"SELECT u FROM A{window}{where} {rank}{whole}",
            f"SELECT DISTINCT ON ({keys}) u FROM A{window}{where}{order}{whole}",
        )
    )
    return cql, f"SELECT u FROM {first_of_each(keys, size, last, where)}"


def first_of_each(keys: str, size: int, last: str, where: str = "") -> str:
    """The rows of A that no row of their key came before, or with DESC after, within so many seconds."""
    rows = one_of_each("A", keys, where)
    same = " AND ".join(f"x.{key} IS NOT DISTINCT FROM y.{key}" for key in keys.split(", "))
    near = f"y.__ts > x.__ts AND y.__ts <= x.__ts + {size} * {SECOND}"
    if not last:
        near = f"y.__ts < x.__ts AND y.__ts >= x.__ts - {size} * {SECOND}"
    return f"(SELECT * FROM {rows} AS x WHERE NOT EXISTS (SELECT 1 FROM {rows} AS y WHERE {same} AND {near}))"


@form
def numbered_first_rows(rng: Random) -> tuple[str, str]:
    size, keys, last = rng.choice((0, 1, 3, 8)), rng.choice(("k", "k, s", "d")), rng.choice(("", " ASC", " DESC"))
    where, after = rng.choice(("", " WHERE n > 0")), rng.choice(("", " AND u % 2 = 0"))
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    listed = rng.choice(("*", "k AS key, u"))
    rank = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY ts{last})"
    inner = f"SELECT {listed}, {rank} AS rn FROM A{window}{where}"
    asked = rng.choice(("rn = 1", "rn <= 1", "rn < 2", "1 = rn"))
    cql = rng.choice(
        (
            f"SELECT u, rn FROM ({inner}) WHERE {asked}{after}{whole}",
            f"SELECT x.u, x.rn FROM ({inner}) AS x WHERE {asked.replace('rn', 'x.rn')}{after}{whole}",
            f"WITH d AS ({inner}) SELECT u, rn FROM d WHERE {asked}{after}{whole}",
        )
    )
    found = first_of_each(keys, size, last.replace(" ASC", ""), where)
    return cql, f"SELECT u, 1::BIGINT AS rn FROM {found} WHERE true{after}"


@form
def window_join(rng: Random) -> tuple[str, str]:
    size, moved = rng.choice((1, 3, 10)), rng.choice((0, 0, 1))
    spelt = rng.choice(
        (
            "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '{1}' SECONDS{2}))",
            "(SELECT * FROM TABLE(TUMBLE(DATA => TABLE {0}, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '{1}' SECONDS"
            "{2})))",
            "TUMBLE({0}, ts, INTERVAL {1} SECONDS{2})",
        )
    )
    offset = f", INTERVAL {moved} SECONDS" if moved else ""
    left, right = (spelt.format(name, size, offset) for name in "AB")
    begins = ["({0}.__ts - {1}) // {2} * {2} + {1}".format(name, moved * SECOND, size * SECOND) for name in "AB"]
    same = rng.choice(
        ("L.window_start = R.window_start AND L.window_end = R.window_end", "R.window_end = L.window_end")
    )
    tie = rng.choice(("L.k = R.k", "L.s = R.s AND L.n <= R.n", "TRUE"))
    meant, near = tie.replace("L.", "A.").replace("R.", "B."), f"{begins[0]} = {begins[1]}"
    kind = rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "IN", "EXISTS"))
    if kind == "EXISTS":
        no = rng.choice(("", "NOT "))
        asked = f"{no}EXISTS (SELECT * FROM {right} R WHERE {tie} AND {same})"
        cql = f"SELECT L.u, L.window_start AS w FROM {left} L WHERE {asked}"
        where = f"{no}EXISTS (SELECT 1 FROM B WHERE {meant} AND {near})"
        return cql, f"SELECT A.u, make_timestamp({begins[0]}) AS w FROM A WHERE {where}"
    if kind == "IN":
        cql = f"SELECT L.u FROM {left} AS L WHERE L.k IN (SELECT k FROM {right} AS R WHERE {same})"
        return cql, f"SELECT A.u FROM A WHERE A.k IN (SELECT B.k FROM B WHERE {near})"
    items = "L.u AS u, R.u AS w, COALESCE(L.window_end, R.window_end) AS e"
    ends = ", ".join(f"{one} + {size * SECOND}" for one in begins)
    cql = f"SELECT {items} FROM {left} L {kind} {right} R ON {tie} AND {same}"
    if kind == "JOIN" and rng.random() < 0.3:
        cql = f"SELECT {items} FROM {left} AS L, {right} AS R WHERE {tie} AND {same}"
    return cql, f"SELECT {ITEMS}, make_timestamp(COALESCE({ends})) AS e FROM A {kind} B ON {meant} AND {near}"


@form
def sliding_window_join(rng: Random) -> tuple[str, str]:
    """Rows in several windows: DuckDB makes each row's windows one by one, and joins these."""
    step, count, moved = rng.choice((1, 2, 5)), rng.choice((1, 2, 3)), rng.choice((0, 0, 1))
    hops = rng.random() < 0.6
    size = step * count + (rng.choice((0, 0, 1)) if hops else 0)
    spelt = rng.choice(
        (
            "TABLE({3}(TABLE {0}, DESCRIPTOR(ts), INTERVAL '{1}' SECONDS, INTERVAL '{2}' SECONDS{4}))",
            "(SELECT * FROM TABLE({3}(TABLE {0}, DESCRIPTOR(ts), INTERVAL '{1}' SECONDS, INTERVAL '{2}' SECONDS{4})))",
            "{3}({0}, ts, INTERVAL {1} SECONDS, INTERVAL {2} SECONDS{4})",
        )
    )
    offset = f", INTERVAL {moved} SECONDS" if moved else ""
    left, right, third = (spelt.format(n, step, size, "HOP" if hops else "CUMULATE", offset) for n in "ABC")
    a, b, c = (rows_in_windows(n, step * SECOND, size * SECOND, moved * SECOND, hops=hops) for n in "ABC")
    same = "L.window_start = R.window_start AND L.window_end = R.window_end"
    if hops:
        same = rng.choice((same, same, "R.window_end = L.window_end", "L.window_start = R.window_start"))
        if rng.random() < 0.2:
            right, same = f"TUMBLE(B, ts, INTERVAL {step} SECONDS{offset})", "L.window_end = R.window_end"
            b = rows_in_windows("B", step * SECOND, step * SECOND, moved * SECOND, hops=True)
    tie = rng.choice(("L.k = R.k", "L.s = R.s AND L.n <= R.n", "TRUE"))
    kind = rng.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "IN", "EXISTS", "three", "one"))
    items = "L.u AS u, R.u AS w, COALESCE(L.window_end, R.window_end) AS e"
    if kind == "EXISTS":
        no = rng.choice(("", "NOT "))
        text = "SELECT L.u, L.window_start AS w FROM {} L WHERE "
        text += f"{no}EXISTS (SELECT 1 FROM {{}} R WHERE {tie} AND {same})"
    elif kind == "IN":
        text = f"SELECT L.u, L.window_end AS e FROM {{}} AS L WHERE L.k IN (SELECT k FROM {{}} AS R WHERE {same})"
    elif kind == "one":
        text = "SELECT u, k, window_start, window_end FROM {}" + rng.choice(("", " AS L", " WHERE n > 0"))
    elif kind == "three":
        third_kind = rng.choice(("JOIN", "LEFT JOIN"))
        text = f"SELECT {items}, M.u AS m FROM {{}} L {rng.choice(('JOIN', 'LEFT JOIN'))} {{}} R ON {tie} AND {same} "
        text += f"{third_kind} {{}} M ON L.k = M.k AND L.window_end = M.window_end AND L.window_start = M.window_start"
    else:
        text = f"SELECT {items} FROM {{}} L {kind} {{}} R ON {tie} AND {same}"
        if kind == "JOIN" and rng.random() < 0.3:
            text = f"SELECT {items} FROM {{}} AS L, {{}} AS R WHERE {tie} AND {same}"
    return text.format(left, right, third), text.format(a, b, c)


def rows_in_windows(name: str, step: int, size: int, moved: int, *, hops: bool) -> str:
    """DuckDB's subquery of a stream's rows, once for each window that it is in."""
    if hops:
        first = f"(__ts - {moved}) // {step} * {step} + {moved}"
        bounds = f"{first} - i * {step} AS b, {first} - i * {step} + {size} AS e"
    else:
        first = f"(__ts - {moved}) // {size} * {size} + {moved}"
        bounds = f"{first} AS b, {first} + (i + 1) * {step} AS e"
    numbers = f"unnest(generate_series(0, {size // step})) AS t(i)"
    columns = "k, n, s, d, m, day, ok, u, __ts, make_timestamp(b) AS window_start, make_timestamp(e) AS window_end"
    within = "b <= __ts AND __ts < e" + ("" if hops else f" AND e <= b + {size}")
    return f"(SELECT {columns} FROM (SELECT *, {bounds} FROM {name}, {numbers}) WHERE {within})"


@form
def joined_groups_of_windows(rng: Random) -> tuple[str, str]:
    """Groups of windows, joined by the bounds of these, which need no other window: those of sessions, too."""
    kind, size = rng.choice(("TUMBLE", "HOP", "SESSION")), rng.choice((1, 3))
    call = {
        "TUMBLE": f"TUMBLE(TABLE {{0}}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS)",
        "HOP": f"HOP(TABLE {{0}}, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS, INTERVAL '{2 * size}' SECONDS)",
        "SESSION": f"SESSION(TABLE {{0}} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{size}' SECONDS)",
    }[kind]
    grouped = (
        "(SELECT k, COUNT(*) AS n, MIN(u) AS u, window_start, window_end FROM {0} GROUP BY k, window_start, window_end)"
    )
    rows = [
        in_sessions(name, size * SECOND)
        if kind == "SESSION"
        else rows_in_windows(name, size * SECOND, size * SECOND * (2 if kind == "HOP" else 1), 0, hops=True)
        for name in "AB"
    ]
    side = rng.choice(("JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "EXISTS", "NOT EXISTS"))
    same = rng.choice(
        ("L.window_start = R.window_start AND L.window_end = R.window_end", "R.window_end = L.window_end")
    )
    tie = rng.choice(("L.k = R.k", "L.n <= R.n", "L.k = R.k AND L.n <> R.n"))
    text = f"SELECT L.u AS u, R.u AS w, L.n AS n, R.n AS m FROM {{}} L {side} {{}} R ON {tie} AND {same}"
    if side.endswith("EXISTS"):
        text = f"SELECT L.u, L.n FROM {{}} L WHERE {side} (SELECT 1 FROM {{}} R WHERE {tie} AND {same})"
    calls = (grouped.format(f"TABLE({call.format(name)})") for name in "AB")
    return text.format(*calls), text.format(*map(grouped.format, rows))


def in_sessions(name: str, gap: int) -> str:
    """DuckDB's subquery of a stream's rows with the bounds of their sessions by `k`."""
    by = "OVER (PARTITION BY k ORDER BY __ts, u)"
    begun = f"SELECT *, CASE WHEN __ts - lag(__ts) {by} <= {gap} THEN 0 ELSE 1 END AS begins FROM {name}"
    numbered = f"SELECT *, sum(begins) {by} AS g FROM ({begun})"
    bounds = f"make_timestamp(min(__ts) OVER s) AS window_start, make_timestamp(max(__ts) OVER s + {gap}) AS window_end"
    return f"(SELECT k, u, {bounds} FROM ({numbered}) WINDOW s AS (PARTITION BY k, g))"


@form
def existence_beside_or(rng: Random) -> tuple[str, str]:
    (window, inside), asked = within(rng), "EXISTS (SELECT 1 FROM B WHERE A.k = B.k{0})"
    second = asked.replace("A.k = B.k", "A.s = B.s")
    shapes = (
        "A.n > 1 OR {0}",
        "{0} OR A.n > 1 OR A.s IS NULL",
        "{0} OR {1}",
        "NOT {0} OR A.n = 0",
        "A.n >= 0 AND ({1} OR {0})",
        "(A.n = 1 OR NOT {0}) AND A.u % 2 = 0",
        "A.n = 1 OR {0} OR NOT {1}",
        "{0} OR A.k IN (SELECT n FROM B{2})",
    )
    shape = rng.choice(shapes)
    cql = shape.format(asked.format(""), second.format(""), "")
    sql = shape.format(asked.format(f" AND {inside}"), second.format(f" AND {inside}"), f" WHERE {inside}")
    return f"SELECT A.u AS u FROM A WHERE {cql}{window}", f"SELECT A.u AS u FROM A WHERE {sql}"


@form
def null_safe_equality(rng: Random) -> tuple[str, str]:
    (window, inside), key = within(rng), rng.choice(("k", "d", "s", "m", "day", "ok"))
    held = f"A.{key} IS NOT DISTINCT FROM B.{key}"
    return f"SELECT {ITEMS} FROM A, B WHERE {held}{window}", f"SELECT {ITEMS} FROM A, B WHERE {held} AND {inside}"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_every_form(seed: int) -> None:
    rng = Random(seed)
    asked = {name: draw(rng) for name, draw in FORMS.items()}
    declared, steps = drawn(rng)
    check(rng, declared, steps, asked)


OVER_FORMS: dict[str, Form] = {}
"""Forms with calls OVER (...), drawn as `FORMS` are."""


def over_form(draw: Form) -> Form:
    OVER_FORMS[draw.__name__] = draw
    return draw


CALLS = (
    ("SUM(n)", "sum(n){}::BIGINT"), ("SUM(u)", "sum(u){}::DECIMAL(38, 0)"), ("SUM(m)", "sum(m){}::DECIMAL(38, 2)"),
    ("COUNT(*)", "count(*){}"), ("COUNT(s)", "count(s){}"), ("AVG(n)", "avg(n){}"), ("AVG(m)", "avg(m){}"),
    ("MIN(s)", "min(s){}"), ("MAX(day)", "max(day){}"), ("MIN(u)", "min(u){}"), ("MEDIAN(n)", "median(n){}"),
    ("COUNT(DISTINCT k)", "count(DISTINCT k){}"),
)  # fmt: skip
"""Calls, and what DuckDB is asked, with a place for FILTER."""
ORDERED_CALLS = (("FIRST_VALUE(s)", "array_extract(list(s ORDER BY p){}, 1)"),
                 ("LAST_VALUE(u)", "array_extract(list(u ORDER BY p){}, -1)"),
                 ("ARRAY_AGG(s)", "list(s ORDER BY p){}"))  # fmt: skip
FILTERS = ("", "", " FILTER (WHERE n > 0)")
PARTITIONS = ("k", "k, s", "d", "")


def partitioned(keys: str) -> tuple[str, str]:
    """PARTITION BY as it is written, and that x and y are of one partition."""
    same = " AND ".join(f"x.{key} IS NOT DISTINCT FROM y.{key}" for key in keys.split(", ") if key)
    return (f"PARTITION BY {keys} " if keys else ""), same or "TRUE"


def in_frames(source: str, calls: list[tuple[str, str, str]], same: str, where: str = "") -> str:
    """The text for DuckDB of calls over the rows of frames: each call, its filter, and which rows y of x it has."""
    rows = f"(SELECT *, row_number() OVER (ORDER BY __ts, u) AS p FROM {source}{where})"
    found = ", ".join(
        f"(SELECT {call.format(chosen)} FROM rows AS y WHERE {same} AND {near}) AS c{at}"
        for at, (call, chosen, near) in enumerate(calls)
    )
    return f"WITH rows AS {rows} SELECT u, {found} FROM rows AS x"


@over_form
def over_in_time(rng: Random) -> tuple[str, str]:
    keys, where = rng.choice(PARTITIONS), rng.choice(("", " WHERE n >= 0"))
    by, same = partitioned(keys)
    written, asked = list[str](), list[tuple[str, str, str]]()
    for at in range(rng.choice((1, 2, 3))):
        (call, sql), chosen = rng.choice(CALLS), rng.choice(FILTERS)
        begin, end = rng.choice((0, 1, 3, 8)), rng.choice((0, 0, 0, 2))
        words = f"BETWEEN INTERVAL {begin} SECONDS PRECEDING AND " + (
            f"INTERVAL '{end}' SECOND FOLLOWING" if end else "CURRENT ROW"
        )
        if not end and rng.random() < 0.3:
            words = f"INTERVAL '{begin} seconds' PRECEDING"
        elif begin > 1 and rng.random() < 0.2:
            words, end = f"BETWEEN INTERVAL {begin} SECONDS PRECEDING AND INTERVAL 1 SECOND PRECEDING", -1
        written.append(f"{call}{chosen} OVER ({by}ORDER BY ts RANGE {words}) AS c{at}")
        asked.append((sql, chosen, f"y.__ts BETWEEN x.__ts - {begin * SECOND} AND x.__ts + {end * SECOND}"))
    sql = in_frames("A", asked, same, where)
    qualify = rng.choice(("", "", "c0"))
    after = f" QUALIFY {qualify} IS NOT NULL" if qualify else ""
    sql = f"SELECT * FROM ({sql}) WHERE c0 IS NOT NULL" if qualify else sql
    return f"SELECT u, {', '.join(written)} FROM A{where}{after}", sql


@over_form
def over_rows(rng: Random) -> tuple[str, str]:
    keys, size = rng.choice(PARTITIONS), rng.choice((0, 1, 4, 9))
    by, same = partitioned(keys)
    written, asked = list[str](), list[tuple[str, str, str]]()
    for at in range(rng.choice((1, 2))):
        (call, sql), chosen = rng.choice(CALLS + ORDERED_CALLS), rng.choice(FILTERS)
        first, last = rng.choice(((-2, 0), (-1, 1), (-3, -1), (0, 2), (1, 2), (-99, 0), (0, 99), (0, 0)))
        ends = [
            "CURRENT ROW" if not end else
            f"{'UNBOUNDED' if abs(end) == 99 else abs(end)} {'PRECEDING' if end < 0 else 'FOLLOWING'}"
            for end in (first, last)
        ]  # fmt: skip
        written.append(f"{call}{chosen} OVER ({by}ORDER BY ts, u ROWS BETWEEN {ends[0]} AND {ends[1]}) AS c{at}")
        place = f"(SELECT count(*) FROM rows AS z WHERE {same.replace('x.', 'z.')} AND z.p {{}} AND z.p {{}})"
        back, ahead = place.format("< x.p", ">= y.p"), place.format("> x.p", "<= y.p")
        near = f"CASE WHEN y.p <= x.p THEN -{back} ELSE {ahead} END BETWEEN {first} AND {last}"
        asked.append((sql, chosen, f"abs(x.__ts - y.__ts) <= {size * SECOND} AND {near}"))
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    return f"SELECT u, {', '.join(written)} FROM A{window}{whole}", in_frames("A", asked, same)


@over_form
def lag_and_lead(rng: Random) -> tuple[str, str]:
    keys, size = rng.choice(PARTITIONS), rng.choice((0, 1, 4, 9))
    by, _ = partitioned(keys)
    down = rng.choice(("", " DESC"))
    order = f"OVER ({by}ORDER BY ts, u{down})"
    written, asked = list[str](), list[str]()
    for at in range(rng.choice((1, 2, 3))):
        call, value, default = rng.choice(("LAG", "LEAD")), rng.choice(("n", "s", "u", "n + 1")), ""
        step = rng.choice(("", "1", "2", "3", "0"))
        if step and rng.random() < 0.4:
            default = {"s": "'none'", "u": "u"}.get(value, "-1")
        arguments = ", ".join(part for part in (value, step, default) if part)
        written.append(f"{call}({arguments}) {order} AS c{at}")
        over = f"OVER ({by}ORDER BY __ts, u{down})"
        there = f"abs({call}(__ts, {step or 1}) {over} - __ts) <= {size * SECOND}"
        asked.append(
            f"CASE WHEN {there} THEN {call}({value}, {step or 1}) {over} ELSE {default or 'NULL'} END AS c{at}"
        )
    window, whole = rng.choice(((f" [RANGE {size} SECONDS]", ""), ("", f" WINDOW {size} SECONDS")))
    return f"SELECT u, {', '.join(written)} FROM A{window}{whole}", f"SELECT u, {', '.join(asked)} FROM A"


@over_form
def lag_and_lead_of_known_values(rng: Random) -> tuple[str, str]:
    """IGNORE NULLS: the rows before or behind that are near enough, without those of which the value is NULL."""
    keys, size = rng.choice(PARTITIONS), rng.choice((0, 1, 4, 9))
    by, same = partitioned(keys)
    written, asked = list[str](), list[tuple[str, str, str]]()
    for at in range(rng.choice((1, 2))):
        lags, value, step = rng.random() < 0.5, rng.choice(("n", "s", "d", "n + 1")), rng.choice((1, 1, 2, 3, 0))
        default = ("'none'" if value == "s" else "-1") if rng.random() < 0.4 else ""
        arguments = value + (f", {step}" if step != 1 or default else "") + (f", {default}" if default else "")
        call = f"{'LAG' if lags else 'LEAD'}({arguments}{{}}) {{}}".format(
            *rng.choice(((" IGNORE NULLS", ""), ("", "IGNORE NULLS ")))
        )
        written.append(f"{call}OVER ({by}ORDER BY ts, u) AS c{at}")
        near = f"y.p {'<' if lags else '>'} x.p AND abs(y.__ts - x.__ts) <= {size * SECOND}"
        own = re.sub(r"\b([nsd])\b", r"y.\1", value)
        values = f"list({own} ORDER BY y.p {'DESC' if lags else ''}) FILTER (WHERE {own} IS NOT NULL)"
        found = f"({values})[{step}]"
        if not step:
            near, found = "y.p = x.p", f"any_value({own})"
        elif default:
            found = f"CASE WHEN count({own}) < {step} THEN {default} ELSE {found} END"
        asked.append((f"{found}{{}}", "", near))
    return f"SELECT u, {', '.join(written)} FROM A [RANGE {size} SECONDS]", in_frames("A", asked, same)


@over_form
def over_a_join(rng: Random) -> tuple[str, str]:
    (window, inside), kind = within(rng), rng.choice(("JOIN", "JOIN", "LEFT JOIN"))
    (call, sql), size = (
        rng.choice((("SUM(B.n)", "sum(w_n)::BIGINT"), ("COUNT(B.u)", "count(w)"))),
        rng.choice((0, 2, 5)),
    )
    time, own = ("_ts", "greatest(A.__ts, B.__ts)") if kind == "JOIN" and rng.random() < 0.5 else ("A.ts", "A.__ts")
    frame = f"RANGE BETWEEN INTERVAL {size} SECONDS PRECEDING AND CURRENT ROW"
    called = f"{call} OVER (PARTITION BY A.k ORDER BY {time} {frame}) AS c"
    cql = f"SELECT {ITEMS}, {called} FROM A {kind} B ON A.k = B.k{window}"
    joined = f"SELECT {ITEMS}, A.k AS k, B.n AS w_n, {own} AS t FROM A {kind} B ON A.k = B.k AND {inside}"
    over = f"OVER (PARTITION BY k ORDER BY t RANGE BETWEEN {size * SECOND} PRECEDING AND CURRENT ROW)"
    return (
        cql,
        f"SELECT u, w, {sql.replace('::', f' {over}::') if '::' in sql else f'{sql} {over}'} AS c FROM ({joined})",
    )


@over_form
def over_below_a_join(rng: Random) -> tuple[str, str]:
    (window, inside), size = within(rng), rng.choice((0, 2, 5))
    frame = "OVER (PARTITION BY k ORDER BY {} RANGE BETWEEN {} PRECEDING AND CURRENT ROW) AS c FROM A"
    below = f"(SELECT u, k, ts, MAX(u) {frame.format('ts', f'INTERVAL {size} SECONDS')}) AS A"
    oracle = f"(SELECT u, k, __ts, max(u) {frame.format('__ts', size * SECOND)}) AS A"
    on = rng.choice(("A.k = B.k", "A.k = B.n AND A.c > A.u"))
    cql = f"SELECT {ITEMS}, A.c AS c FROM {below} JOIN B ON {on}{window}"
    return cql, f"SELECT {ITEMS}, A.c AS c FROM {oracle} JOIN B ON {on} AND {inside}"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_every_form_over_rows(seed: int) -> None:
    rng = Random(seed)
    asked = {name: draw(rng) for name, draw in OVER_FORMS.items()}
    declared, steps = drawn(rng)
    check(rng, declared, steps, asked)


LIST_FORMS: dict[str, Form] = {}
"""Forms that unnest lists, drawn as `FORMS` are, over streams with lists of numbers and of words."""


def list_form(draw: Form) -> Form:
    LIST_FORMS[draw.__name__] = draw
    return draw


ITEM = "(SELECT unnest({0}) AS x, generate_subscripts({0}, 1) AS i) AS t"


@list_form
def items_in_from(rng: Random) -> tuple[str, str]:
    items = rng.choice(("items", "A.items", "words", "A.words"))
    written, left, place = rng.choice(
        (
            ("A CROSS JOIN UNNEST({}) AS t(x)", False, False),
            ("A, UNNEST({}) AS t(x)", False, False),
            ("A CROSS JOIN LATERAL UNNEST({}) AS t(x)", False, False),
            ("A, UNNEST({}) WITH ORDINALITY AS t(x, i)", False, True),
            ("A LATERAL VIEW explode({}) t AS x", False, False),
            ("A LATERAL VIEW OUTER explode({}) t AS x", True, False),
            ("A LEFT JOIN UNNEST({}) AS t(x) ON TRUE", True, False),
            ("A LEFT JOIN UNNEST({}) WITH ORDINALITY AS t(x, i) ON TRUE", True, True),
        )
    )
    where = rng.choice(("", " WHERE A.n > 0", " WHERE t.x IS NOT NULL"))
    shown = "u, x, i" if place else "u, x"
    sql = f"SELECT {shown} FROM A {'LEFT' if left else 'INNER'} JOIN LATERAL {ITEM.format(items)} ON TRUE{where}"
    return f"SELECT {shown} FROM {written.format(items)}{where}", sql


@list_form
def items_in_the_select_list(rng: Random) -> tuple[str, str]:
    call, where = rng.choice(("UNNEST", "explode")), rng.choice(("", " WHERE n > 0"))
    item = rng.choice(("{}(items) AS x", "{}(words) AS x", "coalesce({}(items), 9) AS x"))
    text = f"SELECT u, {item}, k FROM A{where}"
    return text.format(call), text.format("unnest")


@list_form
def two_lists(rng: Random) -> tuple[str, str]:
    first, second = rng.choice((("items", "words"), ("words", "items")))
    cql = rng.choice(
        (
            f"SELECT u, x, y FROM A LATERAL VIEW explode({first}) t AS x LATERAL VIEW explode({second}) r AS y",
            f"SELECT u, x, y FROM A, UNNEST({first}) AS t(x), UNNEST(A.{second}) AS r(y)",
        )
    )
    return cql, f"SELECT u, x, y FROM A, unnest({first}) AS t(x), unnest({second}) AS r(y)"


@list_form
def items_in_groups(rng: Random) -> tuple[str, str]:
    seconds = rng.choice((1, 3))
    begun = f"__ts // {seconds * SECOND}"
    source = "A, UNNEST(A.items) AS t(x)"
    cql = f"SELECT x, COUNT(*) AS n, MAX(u) AS u FROM {source} GROUP BY x, TUMBLE(ts, INTERVAL '{seconds}' SECONDS)"
    return cql, f"SELECT x, count(*) AS n, max(u) AS u FROM {source} GROUP BY x, {begun}"


@list_form
def items_in_a_join(rng: Random) -> tuple[str, str]:
    (window, inside), kind = within(rng), rng.choice(("JOIN", "JOIN", "LEFT JOIN"))
    tie = rng.choice(("B.k = t.x", "B.k = A.k AND t.x > B.n", "B.s = r.y"))
    lists = "A CROSS JOIN UNNEST(A.items) AS t(x)" + (" CROSS JOIN UNNEST(A.words) AS r(y)" if "r.y" in tie else "")
    cql = f"SELECT {ITEMS}, t.x AS x FROM {lists} {kind} B ON {tie}{window}"
    own = f"(SELECT * FROM {lists.replace('CROSS JOIN UNNEST', ', unnest')})"
    own = own.replace("A ,", "A,").replace(") ,", "),")
    tie = tie.replace("t.x", "A.x").replace("r.y", "A.y")
    return cql, f"SELECT {ITEMS}, A.x AS x FROM {own} AS A {kind} B ON {tie} AND {inside}"


@list_form
def items_of_the_second(rng: Random) -> tuple[str, str]:
    window, inside = within(rng)
    where = rng.choice(("", " AND x > 0"))
    cql = (
        f"SELECT {ITEMS}, x FROM A JOIN B ON A.k = B.k CROSS JOIN UNNEST(B.items) AS t(x) WHERE A.n >= 0{where}{window}"
    )
    return (
        cql,
        f"SELECT {ITEMS}, x FROM A JOIN B ON A.k = B.k AND {inside}, unnest(B.items) AS t(x) WHERE A.n >= 0{where}",
    )


@list_form
def items_of_a_subquery(rng: Random) -> tuple[str, str]:
    window, inside = within(rng)
    below = "(SELECT u, k, ts, {}unnest(items) AS x FROM A WHERE n >= 0) AS A"
    cql = f"SELECT {ITEMS}, A.x AS x FROM {below.format('')} JOIN B ON A.x = B.k{window}"
    return cql, f"SELECT {ITEMS}, A.x AS x FROM {below.format('__ts, ')} JOIN B ON A.x = B.k AND {inside}"


@list_form
def items_over_rows(rng: Random) -> tuple[str, str]:
    size = rng.choice((0, 2, 5))
    text = "SELECT u, x, COUNT(*) OVER (PARTITION BY x ORDER BY {} RANGE BETWEEN {} PRECEDING AND CURRENT ROW) AS c "
    text += "FROM A, UNNEST(A.items) AS t(x)"
    return text.format("ts", f"INTERVAL {size} SECONDS"), text.format("__ts", size * SECOND)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_every_form_of_lists(seed: int) -> None:
    rng = Random(seed)
    asked = {name: draw(rng) for name, draw in LIST_FORMS.items()}
    declared, steps = with_lists(rng, *drawn(rng))
    check(rng, declared, steps, asked)


def with_lists(
    rng: Random, declared: tuple[StreamSpec, ...], steps: list[Step]
) -> tuple[tuple[StreamSpec, ...], list[Step]]:
    """The streams and their rows with two columns of lists more: NULL, empty, with NULL and equal items."""
    kinds = {"items": pa.list_(pa.int64()), "words": pa.list_(pa.string())}
    drawn_from = {"items": (0, 1, 2, None), "words": ("a", "b", "", None)}

    def lists(name: str) -> list[Any] | None:
        size = rng.choice((None, 0, 1, 2, 3))
        return None if size is None else [rng.choice(drawn_from[name]) for _ in range(size)]

    found = list[Step]()
    for step in steps:
        tables = dict(step)
        for stream, rows in step.items():
            for name, kind in kinds.items():
                ends = [u == ENDING for u in rows["u"].to_pylist()]
                column = pa.array([None if end else lists(name) for end in ends], kind)
                tables[stream] = tables[stream].append_column(name, column)
        found.append(tables)
    schemas = [pa.schema([*spec.schema, *kinds.items()]) for spec in declared]
    return tuple(replace(spec, schema=schema) for spec, schema in zip(declared, schemas, strict=True)), found


CUMULATED: dict[str, Form] = {}
"""Forms of windows that cumulate, drawn as `FORMS` are."""


def cumulated(draw: Form) -> Form:
    CUMULATED[draw.__name__] = draw
    return draw


def steps_of(rng: Random) -> tuple[str, str, str]:
    """Step, size and offset as CUMULATE has them, and the begin and end of the windows of a row for DuckDB, by its
    time `t` and a number `j` from 0.
    """
    step, count, moved = rng.choice((1, 2, 5)), rng.choice((1, 2, 4)), rng.choice((0, 0, 1, 7))
    written = f"INTERVAL '{step}' SECONDS, INTERVAL '{step * count}' SECONDS"
    written += f", INTERVAL '{moved}' SECONDS" if moved else ""
    begin = f"((t - {moved * SECOND}) // {step * count * SECOND} * {step * count * SECOND} + {moved * SECOND})"
    return written, begin, f"({begin} + (j + 1) * {step * SECOND})"


GROUPED = "SELECT {0}make_timestamp(began) AS b, make_timestamp(ended) AS e, {1} "
GROUPED += "FROM (SELECT *, {2} AS began, {3} AS ended FROM {4}, range(4) AS r(j)) "
GROUPED += "WHERE ended > t AND ended <= {5} GROUP BY {0}began, ended"
CALLS_OF_GROUPS = "COUNT(*) AS c, MIN(u) AS u, SUM(m) AS m"


def whole_end(begin: str, written: str) -> str:
    """When the whole window of a row ends."""
    return f"{begin} + {int(written.split(chr(39))[3]) * SECOND}"


@cumulated
def cumulated_rows(rng: Random) -> tuple[str, str]:
    (written, begin, end), key = steps_of(rng), rng.choice(("", "k, "))
    where, calls = rng.choice(("", " WHERE n > 0")), CALLS_OF_GROUPS
    cql = f"SELECT {key}window_start AS b, window_end AS e, {calls} FROM "
    if rng.random() < 0.5:
        cql += f"TABLE(CUMULATE(TABLE A, DESCRIPTOR(ts), {written})){where} GROUP BY {key}window_start, window_end"
    else:
        cql += f"A{where} GROUP BY {key}CUMULATE(ts, {written})"
    source = f"(SELECT *, __ts AS t FROM A{where})"
    calls = calls.replace("SUM(m)", "sum(m)::DECIMAL(38, 2)")
    return cql, GROUPED.format(key, calls, begin, end, source, whole_end(begin, written))


@cumulated
def cumulated_results(rng: Random) -> tuple[str, str]:
    (window, inside), (written, begin, end) = within(rng), steps_of(rng)
    kind, calls = rng.choice(("JOIN", "JOIN", "LEFT JOIN")), "COUNT(*) AS c, MIN({}u) AS u"
    time, own = ("_ts", "greatest(A.__ts, B.__ts)") if kind == "JOIN" and rng.random() < 0.5 else ("A.ts", "A.__ts")
    cql = f"SELECT window_start AS b, window_end AS e, {calls.format('A.')} FROM A {kind} B ON A.k = B.k "
    cql += f"GROUP BY CUMULATE({time}, {written}){window}"
    source = f"(SELECT A.u AS u, {own} AS t FROM A {kind} B ON A.k = B.k AND {inside})"
    return cql, GROUPED.format("", calls.format(""), begin, end, source, whole_end(begin, written))


@cumulated
def greatest_of_cumulated(rng: Random) -> tuple[str, str]:
    written, begin, end = steps_of(rng)
    below = f"SELECT k, COUNT(*) AS c, MIN(u) AS u, window_end FROM A GROUP BY k, CUMULATE(ts, {written})"
    cql = f"SELECT window_end AS e, MAX(c) AS c, MIN(u) AS u FROM ({below}) GROUP BY window_end"
    source = "(SELECT *, __ts AS t FROM A)"
    sql = GROUPED.format("k, ", "count(*) AS c, min(u) AS u", begin, end, source, whole_end(begin, written))
    return cql, f"SELECT e, max(c) AS c, min(u) AS u FROM ({sql}) GROUP BY e"


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_every_form_of_windows_that_cumulate(seed: int) -> None:
    rng = Random(seed)
    asked = {name: draw(rng) for name, draw in CUMULATED.items()}
    declared, steps = drawn(rng)
    check(rng, declared, steps, asked)


NESTED = pa.schema(
    [
        ("tags", pa.list_(pa.string())),
        ("info", pa.struct({"a": pa.int64(), "of": pa.list_(pa.float64())})),
        ("u", pa.int64()),
        ("ts", pa.timestamp("us")),
    ]
)


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_keys_of_lists_and_structs(seed: int) -> None:
    rng = Random(seed)
    declared = tuple(StreamSpec(name, NESTED) for name in "AB")

    def some(*values: Any) -> Any:
        return rng.choice((*values, None))

    def row(at: int, time: int) -> dict[str, Any]:
        tags = some([], ["x"], ["x", None], ["x", "yz"], ["xy", "z"])
        info = some({"a": some(0, 1), "of": some([], [0.0], [-0.0], [float("nan"), None])})
        return {"tags": tags, "info": info, "u": at, "ts": time}

    times = sorted(rng.randrange(20) * SECOND for _ in range(40))
    rows = {name: [row(at, time) for at, time in enumerate(times)] for name in "AB"}
    size = rng.choice((10, 15, 40))
    steps = [
        {spec.name: table(spec, rows[spec.name][at : at + size]) for spec in declared} for at in range(0, 40, size)
    ]
    ends = [{"tags": None, "info": None, "u": ENDING, "ts": days * 86_400 * SECOND} for days in (100, 200)]
    steps += [{spec.name: table(spec, [one]) for spec in declared} for one in ends]
    near, window, key = "abs(A.__ts - B.__ts) <= 3000000", " WINDOW 3 SECONDS", rng.choice(("tags", "info", "info.of"))
    kind, sign = rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN")), rng.choice(("=", "<>", "IS NOT DISTINCT FROM"))
    join = f"SELECT {ITEMS} FROM A {kind} B ON A.{key} = B.{key}"
    both = f"SELECT {ITEMS} FROM A, B WHERE A.{key} {sign} B.{key}"
    exists = f"SELECT A.u AS u FROM A WHERE NOT EXISTS (SELECT 1 FROM B WHERE B.{key} = A.{key}"
    group = "SELECT COUNT(*) AS n, MIN(u) AS u FROM A GROUP BY {0}"
    first = f"SELECT u FROM A [RANGE 3 SECONDS] QUALIFY ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY ts) = 1"
    earlier = f"y.{key} IS NOT DISTINCT FROM x.{key} AND y.__ts BETWEEN x.__ts - 3000000 AND x.__ts"
    earlier += " AND (y.__ts < x.__ts OR y.u < x.u)"
    asked = {
        "join": (join + window, f"{join} AND {near}"),
        "both": (both + window, f"{both} AND {near}"),
        "exists": (f"{exists}){window}", f"{exists} AND {near})"),
        "group": (
            group.format(f"{key}, TUMBLE(ts, INTERVAL 5 SECONDS)"),
            group.format(f"{key}, __ts // 5000000"),
        ),
        "rows": (
            f"SELECT {key} AS g, COUNT(*) AS n, MIN(u) AS u FROM A WHERE {key} IS NOT NULL "
            f"GROUP BY {key}, TUMBLE(ts, INTERVAL 60 SECONDS)",
            f"SELECT {key} AS g, COUNT(*) AS n, MIN(u) AS u FROM A WHERE {key} IS NOT NULL "
            f"GROUP BY {key}, __ts // 60000000",
        ),
    }
    if key == "tags":
        asked["first"] = (first, f"SELECT u FROM A AS x WHERE NOT EXISTS (SELECT 1 FROM A AS y WHERE {earlier})")
    if key != "tags":
        del asked["rows"]  # Which of equal values is shown, 0.0 or -0.0, is open.
    check(rng, declared, steps, asked)


ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC", "America/Sao_Paulo")
CHANGES = ("2023-03-26", "2023-10-29", "2023-03-12", "2018-11-04", "2023-04-02", "2024-02-28")
"""Days at whose beginning or in which clocks change somewhere."""


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed % 40 == 0 or SOAK else pytest.mark.verify) for seed in range(200)]
)
def test_units_of_local_time_and_moved_windows(seed: int) -> None:
    rng, zoned = Random(seed), bool(seed % 2)
    columns = pa.schema([("k", pa.int64()), ("u", pa.int64()), ("ts", pa.timestamp("us", "UTC" if zoned else None))])
    day = datetime.fromisoformat(rng.choice(CHANGES)).replace(tzinfo=UTC)
    first = int(day.timestamp()) * SECOND - 86_400 * SECOND
    times = sorted(first + rng.randrange(72 * 60) * 60 * SECOND + rng.choice((0, 0, -1)) for _ in range(60))
    rows = [{"k": rng.randrange(2), "u": at, "ts": time} for at, time in enumerate(times)]
    others = [
        {"k": rng.randrange(2), "u": at, "ts": time + rng.choice((0, 1, -1)) * SECOND} for at, time in enumerate(times)
    ]
    others.sort(key=lambda row: row["ts"])
    ends = [{"k": 0, "u": ENDING, "ts": first + days * 86_400 * SECOND} for days in (800, 1600)]
    declared = (StreamSpec("A", columns), StreamSpec("B", columns))
    size = rng.choice((10, 25, 45))
    cuts = [(rows[at : at + size], others[at : at + size]) for at in range(0, 60, size)] + [
        ([one], [one]) for one in ends
    ]
    steps = [{spec.name: table(spec, part) for spec, part in zip(declared, one, strict=True)} for one in cuts]
    zone, unit = rng.choice(ZONES), rng.choice(("day", "day", "hour", "week", "month", "quarter", "year"))
    local = f"ts AT TIME ZONE '{zone}'" if zoned else f"ts AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"
    whole = f"SELECT DATE_TRUNC('{unit}', {local}) AS d, k, COUNT(*) AS n, MIN(u) AS u FROM A GROUP BY "
    written = rng.choice(("1, 2", "d, k", f"DATE_TRUNC('{unit}', {local}), k"))
    hours, moved = rng.choice((1, 5, 24)), rng.choice((0, 1, 30, 90, 240))
    slide = rng.choice((1, hours))
    hop = f"HOP(ts, INTERVAL {slide} HOURS, INTERVAL {hours} HOURS, INTERVAL {moved} MINUTES)"
    tumble = f"TUMBLE(ts, INTERVAL {hours} HOURS, INTERVAL {moved} MINUTES)"
    spark = f"window(ts, '{hours} hours', '{slide} hours', '{moved} minutes')"
    call = rng.choice((hop, spark, tumble) if slide == hours else (hop, spark))
    step, shift = slide * 3_600 * SECOND, moved * 60 * SECOND
    began = f"(__ts - {shift}) // {step} * {step} + {shift} - i * {step}"
    asked = {
        "units": (whole + written, f"{whole}1, 2"),
        "units of a join": units_of_a_join(rng, zone, unit, zoned),
        "moved": (
            f"SELECT window_start AS s, COUNT(*) AS n, MIN(u) AS u FROM A GROUP BY {call}",
            f"SELECT make_timestamp{'tz' if zoned else ''}(s) AS s, COUNT(*) AS n, MIN(u) AS u FROM (SELECT u, __ts, "
            f"{began} AS s FROM A, range({hours}) AS r(i)) WHERE __ts < s + {hours * 3_600 * SECOND} GROUP BY s",
        ),
    }
    check(rng, declared, steps, asked)


def units_of_a_join(rng: Random, zone: str, unit: str, zoned: bool) -> tuple[str, str]:
    """Units of the local time of a join's results, or of the rows of one of its sources."""
    kind, hours = rng.choice(("JOIN", "JOIN", "LEFT JOIN")), rng.choice((0, 1, 30))
    time = "A.ts" if kind == "LEFT JOIN" else rng.choice(("A.ts", "B.ts", "_ts", "A._ts"))
    local = f"{time} AT TIME ZONE '{zone}'" if zoned else f"{time} AT TIME ZONE 'UTC' AT TIME ZONE '{zone}'"
    listed = "A.k, COUNT(B.u) AS n, MIN(A.u) AS u, MAX(B.u) AS w"
    written = rng.choice(("1, 2", "d, A.k", f"A.k, DATE_TRUNC('{unit}', {local})"))
    cql = f"SELECT DATE_TRUNC('{unit}', {local}) AS d, {listed} FROM A {kind} B ON A.k = B.k GROUP BY {written}"
    meant = local.replace("_ts", "greatest(A.ts, B.ts)" if time == "_ts" else "ts")
    sql = f"SELECT DATE_TRUNC('{unit}', {meant}) AS d, {listed} FROM A {kind} B ON A.k = B.k"
    return f"{cql} WINDOW {hours} HOURS", f"{sql} AND abs(A.__ts - B.__ts) <= {hours * 3_600 * SECOND} GROUP BY 1, 2"


def drawn(rng: Random) -> tuple[tuple[StreamSpec, ...], list[Step]]:
    """Draw rows of A, B and C in steps, those that end the windows last."""
    disorder = rng.choice((0, 0, 3))
    shape = Shape(
        seed=rng.randrange(2**20),
        sizes=(rng.choice((12, 20)), rng.choice((12, 20)), 10),
        span=rng.choice((4, 10, 20)),
        keys=rng.choice((1, 2, 3)),
        nulls=rng.choice((0.0, 0.1, 0.3)),
        jitter=rng.random() < 0.3,
        disorder=disorder,
        slack=rng.choice((None, 1)) if disorder else None,
    )
    declared, sequence = draw_rows(shape)
    cuts = tuple(rng.randrange(101) for _ in range(rng.choice((1, 2, 3))))
    ends = [
        {
            spec.name: table(
                spec, [dict.fromkeys(spec.schema.names) | {"u": ENDING, "ts": BEGIN + days * 86_400 * SECOND}]
            )
        }
        for days in (100, 200)
        for spec in declared
    ]
    merged = [{k: v for one in ends[n : n + 3] for k, v in one.items()} for n in (0, 3)]
    return declared, [*cut(declared, sequence, cuts), *merged]


def check(rng: Random, declared: tuple[StreamSpec, ...], steps: list[Step], asked: dict[str, tuple[str, str]]) -> None:
    """Fail unless every query answers what DuckDB does; now and then a query migrates, or the engine starts again."""
    chance, engine = Random(repr(asked)), start(declared, lanes=rng.choice((1, 3)), sharing=rng.choice(("auto", "off")))
    for name, (cql, _) in asked.items():
        engine.add_query(name, cql)
    found = {name: Counter[Any]() for name in asked}
    for step in steps:
        able = [n for n, q in engine.manifest.queries.items() if len(query_of(q).aliases) > 1]
        if able and rng.random() < 0.3:
            aliases = list(query_of(engine.manifest.queries[name := rng.choice(able)]).aliases)
            rng.shuffle(aliases)
            with suppress(ms.StrategyError):  # It runs so already.
                plan = reduce("({} {})".format, aliases)
                engine.migrate(name, plan=plan, strategy=rng.choice(("moving_state", "jisc")))
        if chance.random() < 0.2:
            engine = restarted(engine, step, crash=chance.random() < 0.5)
        for name, answers in engine.push(dict(step)).items():
            if name in found:
                found[name].update(_rows(answers))
    arrivals = arrive(declared, steps, ())
    for name, rows in arrivals.admitted.items():
        connection().register(name, rows)
    for name, (cql, sql) in asked.items():
        expected = Counter(_rows(connection().sql(sql).to_arrow_table()))
        assert found[name] == expected, f"{name}: {cql}"


def _rows(answers: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows of answers but for those that only end the windows."""
    rows = (tuple(map(repr, row.values())) for row in answers.to_pylist())
    return [row for row in rows if str(ENDING) not in row]
