"""An engine on a checkpoint that looks after its plan: `python -m tests.embedded.decide_engine FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import midstream as ms
from tests.optimizer.drifting import BAD_FIRST, COLUMNS, query, rows

BAD = "((A B) C)"
SETTINGS = {"mode": "auto", "review": "2 seconds", "effort": 1.0, "allow": ["(A (B C))", "hybmig"]}
OPTIONS = {"reviews": 2}
STEPS = 16

OF_ANY_POLICY = {"mode": "auto", "review": "2 seconds", "horizon": "1 hour", "effort": 1.0, "allow": ["hybmig", "cacq"]}
"""Settings under which every policy moves the query, by migrations that last where its plans are trees."""


def policy_file(root: Path) -> Path:
    """Where a test names the policy that decides, and its options: `lambda_chart cost=om`."""
    return root / "policy"


def conditions_file(root: Path) -> Path:
    """Where a test names conditions on A, which a chart orders: then A and B are joined, which have one plan."""
    return root / "conditions"


def query_and_plan(root: Path) -> tuple[str, str]:
    """Return the query that the folder asks for, and its first plan."""
    if not conditions_file(root).exists():
        return query("ABC", window=3), BAD
    where = conditions_file(root).read_text()
    return query("AB", window=3).replace(" WINDOW", f" AND {where} WINDOW"), "(A B)"


def settings(root: Path) -> dict[str, Any]:
    """Return the settings of the policy that the folder names, or else of `adaptive` with two plans to choose from."""
    if not policy_file(root).exists():
        return SETTINGS | OPTIONS
    policy, *options = policy_file(root).read_text().split()
    return OF_ANY_POLICY | {"policy": policy} | dict(one.split("=") for one in options)


def the_engine(root: Path) -> ms.Engine:
    engine = ms.Engine(checkpoint=root / "checkpoint")
    for name in "ABC":
        engine.create_stream(name, COLUMNS, timestamp="ts")
    engine.add_query("q", *query_and_plan(root), ms.sinks.files(root / "answers"))
    return engine


def main(root: Path, steps: int = STEPS) -> None:
    with the_engine(root) as engine:
        if engine.manifest.step < 0:
            engine.optimize("q", **settings(root))
        for number in range(engine.manifest.step + 1, steps):
            engine.push(rows(number, BAD_FIRST, rate=60))


def answers(sink: Path) -> list[tuple[int, ...]]:
    """Everything that was answered, with the step it is filed under."""
    found = []
    for folder in sorted(sink.glob("step=*")):
        table: pa.Table = pq.read_table(folder)
        found += [(int(folder.name[5:]), *row.values()) for row in table.to_pylist()]
    return sorted(found)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
