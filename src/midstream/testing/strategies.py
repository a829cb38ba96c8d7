"""The suite for a strategy: queries that it carries from plan to plan answer what a database answers, in every step.

A migration may cost work, never a result (`docs/semantics.md`, invariant 2). So the suite draws joins, first and later
plans, options, overlaps with other strategies, restarts and lanes; rows come out of order, and each step's part of the
answer is held against DuckDB. In the end every migration must be over, because nothing old can be joined any more.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from midstream.embedded import Engine
from midstream.migration.strategy_contract import Strategy, discovered
from midstream.model.errors import StrategyError
from midstream.model.manifest import DEFAULT_SHARING
from midstream.sharing.schemes.scheme_contract import schemes
from midstream.testing.suite import SCHEMA, STEP, DrawnJoin, Family, Oracle, draw_rows, installed, located

STEPS = 9
AFTER = 1000
"""The number of the last step that brings rows: all windows have passed those of the others by then."""

QUERY = "carried"


def check_strategy(kind: type[Strategy], *, cases: int = 10, seed: int = 0) -> None:
    """Check that a strategy ends every migration that it accepts, and that the answer stays exact.

    The check runs `cases` random tests with the seeds `seed`, `seed + 1` and so on. If a test fails, the check raises
    an `AssertionError` that names the seed. `check_strategy(kind, cases=1, seed=...)` repeats the test with this seed.
    The check also fails if the strategy accepts none of the migrations, or if an option refuses its own default or
    example. The strategy does not have to be installed.

    >>> from midstream.migration.hybmig import HybMig
    >>> check_strategy(HybMig, cases=2)
    """
    for option in kind.options:
        for value in (option.default, *option.examples()):
            assert option.wrong(value) is None, f"option {option.name} does not accept {value!r}: {option.wrong(value)}"
    with installed(discovered(), kind.name, kind()):
        carried = 0
        for number in range(seed, seed + cases):
            with located(f"{kind.name}, seed {number}"):
                carried += _course(kind.name, Random(number))
    assert carried or cases < 5, f"{kind.name} accepted none of {cases} courses"


def trees(rng: Random, names: str) -> str:
    """Draw a tree of pairs over all these streams, in any order and shape.

    >>> trees(Random(0), "ABC")
    '(B (C A))'
    """
    parts = rng.sample(names, len(names))
    while len(parts) > 1:
        at = rng.randrange(len(parts) - 1)
        parts[at : at + 2] = [f"({parts[at]} {parts[at + 1]})"]
    return parts[0]


def plans(rng: Random, names: str) -> str:
    """Draw a plan of any form over all these streams."""
    match rng.choice(("tree", "tree", "tree", "orders", "eddy", "stairs")):
        case "orders":
            orders = (f"{a}: {' '.join(rng.sample(names.replace(a, ''), len(names) - 1))}" for a in names)
            return f"[{' | '.join(orders)}]"
        case "eddy":
            return f"eddy({' '.join(names)})"
        case "stairs":
            return f"stairs({trees(rng, names)})"
    return trees(rng, names)


def _course(strategy: str, rng: Random) -> int:
    family = Family.draw(rng)
    join = family.join(rng)
    alone = (name for name, found in schemes().items() if not found.shares)
    engine = Engine(lanes=rng.choice((1, 1, 2)), sharing=rng.choice((DEFAULT_SHARING, *alone)))
    for name in join.streams:
        engine.create_stream(name, "u BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts", lateness=STEP)
    engine.add_query(QUERY, join.cql(), plan=plans(rng, join.streams))
    carried = 0
    owed = _Owed()
    with Oracle(join.streams) as oracle:
        for step in (*range(STEPS), AFTER, AFTER + 1):
            if 0 < step < AFTER and rng.random() < 0.5:
                carried += _migrate(rng, engine, join, strategy)
            if rng.random() < 0.1:
                engine = _restarted(engine)
            if rng.random() < 0.1:
                engine.rescale(lanes=rng.choice((1, 2)))
            tables = draw_rows(rng, join.streams, step) if step < AFTER else _rows_after_all(join.streams, step)
            answer = engine.push(tables)[QUERY]
            oracle.push(tables, step)
            with located(f"step {step}, {join.cql()}"):
                owed.check(engine, answer, oracle.answer(join, step), last=step > AFTER)
    with located(f"after all, {join.cql()}"):
        assert engine.migration(QUERY) is None, f"a migration does not end: {engine.migration(QUERY)}"
    return carried


def _rows_after_all(streams: str, step: int) -> dict[str, pa.Table]:
    # First rows so late that every window has passed all others, since a silent stream would hold the watermark.
    row = {"u": [100 * AFTER], "k": [None], "v": [0], "ts": [AFTER * STEP]}
    return dict.fromkeys(streams, pa.table(row, schema=SCHEMA)) if step == AFTER else {}


class _Owed:
    """Compares answers step by step; while a migration holds results back, they may come later, never twice."""

    def __init__(self) -> None:
        self._due: Counter[Any] = Counter()

    def check(self, engine: Engine, answer: pa.Table, expected: Counter[Any], *, last: bool) -> None:
        times = answer["_ts"].cast(pa.int64())
        found = Counter(zip(*(column.to_pylist() for column in (*answer.columns[:-1], times)), strict=True))
        due = self._due + expected
        assert not found - due, f"has too many {dict(found - due)}"
        self._due = due - found
        migration = engine.migration(QUERY)
        holds = migration is not None and "held back" in str(migration.get("phase"))
        assert holds or not self._due, f"lacks {dict(self._due)}"
        assert times.to_pylist() == sorted(times.to_pylist()), "not in order of time"
        assert not (last and self._due), f"lacks {dict(self._due)} after all"


def _migrate(rng: Random, engine: Engine, join: DrawnJoin, strategy: str) -> int:
    # One time in four by any strategy, so that migrations of several kinds overlap.
    chosen = strategy if rng.random() < 0.75 else rng.choice(list(discovered()))
    options = {
        option.name: rng.choice(option.examples()) for option in discovered()[chosen].options if rng.random() < 0.5
    }
    for _ in range(4):
        with suppress(StrategyError):
            engine.migrate(QUERY, plans(rng, join.streams), chosen, together=rng.random() < 0.5, **options)
            return int(chosen == strategy)
    return 0


def _restarted(engine: Engine) -> Engine:
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "saved")
        return Engine.load(Path(folder) / "saved")
