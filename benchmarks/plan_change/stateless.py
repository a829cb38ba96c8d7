"""What `pause_drain_resume` does accept: a query without state, on which it loses and doubles nothing."""

from __future__ import annotations

import midstream as ms
from benchmarks.plan_change.rows import Rows

SQL = "SELECT A.id FROM A WHERE A.id % 3 = 0"
PLANS = ("A", "[A: ]")


def carried(rows: Rows, strategy: str) -> str:
    """One sentence on carrying a selection from one plan to another in mid-run."""
    table = rows.tables["A"]
    half = table.num_rows // 2
    engine = ms.Engine()
    engine.create_stream("A", table.schema, timestamp="ts")
    engine.add_query("q", SQL, plan=PLANS[0])
    ids = engine.push({"A": table.slice(0, half)})["q"].column("id").to_pylist()
    try:
        engine.migrate("q", PLANS[1], strategy=strategy)
    except ms.StrategyError as error:
        return f"`{strategy}` refuses even `{SQL}`: {error}"
    ids += engine.push({"A": table.slice(half)})["q"].column("id").to_pylist()
    wanted = list(range(0, table.num_rows, 3))
    verdict = "nothing lost, nothing doubled" if sorted(ids) == wanted else "**WRONG RESULTS**"
    return f"`{strategy}` carries the stateless `{SQL}` from `{PLANS[0]}` to `{PLANS[1]}` in mid-run: {verdict}."
