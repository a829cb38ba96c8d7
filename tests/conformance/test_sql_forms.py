"""Every strategy carries the join below a form of SQL that has an operator of its own, and no answer changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from random import Random
from typing import Any

import pytest

import midstream as ms
from midstream.logical.query import query_of
from midstream.migration.strategy_contract import discovered
from tests.oracle.arrival import Step
from tests.property.drive import start
from tests.property.test_sql_forms import _rows, drawn, with_lists

pytestmark = [pytest.mark.property, pytest.mark.timeout(600)]

JOINED = "A, B, C WHERE A.k = B.k AND B.n = C.n"
ITEMS = "A.u AS u, B.u AS v, C.u AS w"
BY = "OVER (PARTITION BY A.k ORDER BY"
TUMBLED = "TABLE(TUMBLE(TABLE {0}, DESCRIPTOR(ts), INTERVAL '3' SECONDS))"
HOPPED = "TABLE(HOP(TABLE {0}, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '2' SECONDS))"
FORMS = {
    "OVER": f"SELECT {ITEMS}, SUM(B.n) {BY} A.ts RANGE INTERVAL 2 SECONDS PRECEDING) AS s FROM {JOINED}",
    "LAG and LEAD": f"SELECT {ITEMS}, LAG(C.u) {BY} _ts) AS l, LEAD(A.u, 2) {BY} _ts) AS n FROM {JOINED}",
    "UNNEST": f"SELECT {ITEMS}, x FROM {JOINED.replace('WHERE', 'CROSS JOIN UNNEST(B.items) AS t(x) WHERE')}",
    "CUMULATE": f"SELECT COUNT(*) AS c, MIN(A.u) AS u, SUM(C.u) AS w, window_start AS b FROM {JOINED} "
    "GROUP BY CUMULATE(_ts, INTERVAL '1' SECOND, INTERVAL '4' SECONDS)",
    "calendar": "SELECT COUNT(*) AS c, MIN(A.u) AS u, SUM(C.u) AS w, date_trunc('second', _ts AT TIME ZONE 'UTC' "
    f"AT TIME ZONE 'Europe/Berlin') AS b FROM {JOINED} GROUP BY b",
    "keys of lists": f"SELECT {ITEMS} FROM A, B, C WHERE A.items = B.items AND B.n = C.n",
    "ASOF": f"SELECT {ITEMS} FROM A ASOF JOIN B ON A.k = B.k AND A.ts >= B.ts JOIN C ON B.n = C.n",
    "LATERAL": f"SELECT {ITEMS} FROM A JOIN C ON A.n = C.n, LATERAL "
    "(SELECT u FROM B AS b WHERE b.k = A.k AND b.ts <= A.ts ORDER BY b.ts DESC LIMIT 1) AS B",
    "first rows": f"SELECT {ITEMS} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM A) A, "
    "B, C WHERE A.rn = 1 AND A.k = B.k AND B.n = C.n",
    "joined windows": f"SELECT {ITEMS} FROM {TUMBLED.format('A')} A JOIN {TUMBLED.format('B')} B "
    "ON A.k = B.k AND A.window_start = B.window_start JOIN C ON B.n = C.n",
    "joined sliding windows": f"SELECT {ITEMS} FROM {HOPPED.format('A')} A JOIN {HOPPED.format('B')} B "
    f"ON A.k = B.k AND A.window_end = B.window_end JOIN {HOPPED.format('C')} C ON B.n = C.n "
    "AND B.window_start = C.window_start",
}
PLANS = (
    "((A B) C)",
    "(A (B C))",
    "((C B) A)",
    "eddy(A B C)",
    "eddy:rank(A B C)",
    "stairs(((A B) C))",
    "stairs((A (B C)))",
)
PLANS += ("[A: B C | B: C A | C: B A]", "[A: B C | B: A C | C: B A]")


def answers(strategy: str | None) -> tuple[dict[str, Counter[Any]], int]:
    """What each form answers, and how often a join below one was carried by the strategy."""
    rng, carried = Random(11), 0
    declared, steps = with_lists(rng, *drawn(rng))
    engine = start(declared, sharing="off")
    for name, cql in FORMS.items():
        engine.add_query(name, f"{cql} WINDOW 3 SECONDS")
    found = {name: Counter[Any]() for name in FORMS}
    for step in in_pieces(steps):
        for name, query in engine.manifest.queries.items():
            if strategy is not None and len(query_of(query).aliases) == 3:
                carried += migrated(engine, name, rng.sample(PLANS, len(PLANS)), strategy)
        for name, rows in engine.push(dict(step)).items():
            if name in found:
                found[name].update(_rows(rows))
    return found, carried


def migrated(engine: ms.Engine, name: str, plans: list[str], strategy: str) -> bool:
    """Carry a query by a strategy to the first plan that it takes, or else by another, so that it may take one next."""
    for plan in plans:
        with suppress(ms.StrategyError):
            engine.migrate(name, plan=plan, strategy=strategy)
            return True
    with suppress(ms.StrategyError):  # It is being carried.
        engine.migrate(name, plan=plans[0], strategy="parallel_track")
    return False


def in_pieces(steps: list[Step]) -> Iterator[Step]:
    """The steps, each cut into some of three rows of each stream."""
    for step in steps:
        most = max(table.num_rows for table in step.values())
        for at in range(0, most, 3):
            yield {name: table.slice(at, 3) for name, table in step.items() if table.num_rows > at}


@lru_cache
def undisturbed() -> dict[str, Counter[Any]]:
    """What they answer without migrations, as DuckDB does: see `tests/property/test_sql_forms.py`."""
    return answers(None)[0]


@pytest.mark.parametrize(
    "strategy", [pytest.param(name, marks=() if name == "jisc" else pytest.mark.verify) for name in discovered()]
)
def test_no_answer_of_a_form_changes(strategy: str) -> None:
    found, carried = answers(strategy)
    assert found == undisturbed()
    assert all(undisturbed().values())
    assert bool(carried) == (strategy != "pause_drain_resume")  # It carries no join.
