"""The suite for a way of sharing: sets of queries that come, change, move and go answer by it what a database answers.

Sharing may change what work is done, never an answer (Wang §7.3; `docs/semantics.md`, invariant 2). So the suite draws
sets of queries over the same join, pushes rows out of order, and holds each query's part of each step against DuckDB.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from midstream.embedded import Engine
from midstream.model.errors import StrategyError
from midstream.sharing.chain_cost import ChainLoad, UnitCosts
from midstream.sharing.schemes.scheme_contract import Figures, Scheme, schemes
from midstream.testing.suite import STEP, DrawnJoin, Family, Oracle, draw_rows, installed, located

STEPS = 8


def check_scheme(kind: type[Scheme], *, cases: int = 10, seed: int = 0) -> None:
    """Check that a scheme cuts chains as the contract of schemes says, and changes no answer.

    The check runs `cases` random sets of queries with the seeds `seed`, `seed + 1` and so on. If a test fails, the
    check raises an `AssertionError` that names the seed. `check_scheme(kind, cases=1, seed=...)` repeats the test with
    this seed. The scheme does not have to be installed.

    >>> from midstream.sharing.schemes.mem_opt import MemOpt
    >>> check_scheme(MemOpt, cases=1)
    """
    with installed(schemes(), kind.name, kind()):
        for number in range(seed, seed + cases):
            with located(f"{kind.name}, seed {number}"):
                _check_cuts(schemes()[kind.name], Random(number))
                _check_answers(kind.name, Random(number))


def _check_cuts(scheme: Scheme, rng: Random) -> None:
    # Cuts are some of the windows, ascending up to the widest, and equal whenever the arguments are.
    for _ in range(20):
        windows = sorted(rng.sample(range(1, 1000), rng.randrange(2, 8)))
        present = tuple(window for window in windows if rng.random() < 0.5)
        load = ChainLoad(tuple(map(float, windows)), rng.uniform(0.1, 9), rng.uniform(0.1, 9), rng.random())
        for figures in (None, Figures(load, UnitCosts(boundary=rng.choice((0.0, 100.0))))):
            cuts = scheme.cuts(windows, figures, present)
            case = f"cuts({windows}, {figures}, {present}) = {cuts}"
            assert cuts == scheme.cuts(windows, figures, present), f"{case}, and then something else"
            assert list(cuts) == sorted(set(cuts)) and set(cuts) <= set(windows), f"{case}: not windows, ascending"
            assert not cuts or cuts[-1] == windows[-1], f"{case}: the last is not the widest window"


@dataclass(frozen=True)
class _Running:
    """A query, the step it began with or was changed in, and what it was said to see."""

    join: DrawnJoin
    since: int
    sees: str | int = "all"
    from_step: int = 0
    exact_from: int | None = None

    @property
    def seen(self) -> str:
        """The rows that it sees, as a condition; all that arrive since it began are among them."""
        if self.sees == "all":
            return "true"
        older = f" AND {{0}}.ts >= {self.sees}" if isinstance(self.sees, int) else ""
        return f"({{0}}.step >= {self.since} OR {{0}}.step >= {self.from_step}{older})"


def _check_answers(sharing: str, rng: Random) -> None:
    family = Family.draw(rng)
    engine = Engine(sharing=rng.choice((sharing, sharing, *schemes())), lanes=rng.choice((1, 1, 2)))
    for name in family.streams:
        engine.create_stream(name, "u BIGINT, k BIGINT, v BIGINT, ts TIMESTAMP", timestamp="ts", lateness=STEP)
    live: dict[str, _Running] = {}
    with Oracle(family.streams) as oracle:
        for step in range(STEPS):
            if step == 1:
                engine.reshare(sharing)
            for _ in range(rng.choice((0, 1, 1, 2))):
                engine = _act(rng, engine, live, family.join(rng), step)
            tables = draw_rows(rng, family.streams, step)
            results = engine.push(tables)
            oracle.push(tables, step)
            _note_what_they_see(engine, live, step)
            for name, running in live.items():
                with located(f"step {step}, query {name} (sees {running.sees}): {running.join.cql()}"):
                    _check_answer(oracle, running, results[name], step)


def _act(rng: Random, engine: Engine, live: dict[str, _Running], join: DrawnJoin, step: int) -> Engine:
    # A new query is the most likely.
    name = rng.choice(sorted(live)) if live else ""
    match rng.choice(("add", "add", "add", "change", "drop", "migrate", "rescale", "restart")):
        case "change" if name and _shares(engine, name):
            engine.change_query(name, join.cql())
            live[name] = _Running(join, step)
        case "drop" if name:
            engine.drop_query(name)
            del live[name]
        case "migrate" if name:
            a, b, *others = rng.sample(join.streams, len(join.streams))
            plan = f"(({a} {b}) {others[0]})" if others else f"({a} {b})"
            with suppress(StrategyError):  # It has that plan already, or the scheme runs it as several joins.
                engine.migrate(name, plan, together=rng.random() < 0.5)
        case "rescale":
            engine.rescale(lanes=rng.choice((1, 2)))
        case "restart":
            with tempfile.TemporaryDirectory() as folder:
                engine.save(Path(folder) / "saved")
                return Engine.load(Path(folder) / "saved")
        case "add":
            name = f"q{len(live)}.{step}"
            if name not in live:
                engine.add_query(name, join.cql(), history=rng.random() < 0.9)
                live[name] = _Running(join, step)
    return engine


def _shares(engine: Engine, name: str) -> bool:
    # A query that begins with the next step does not run yet.
    return name in engine.manifest.queries and engine.manifest.queries[name].shares


def _note_what_they_see(engine: Engine, live: dict[str, _Running], step: int) -> None:
    for event in engine.events:
        told: Any = event
        if event.step == step and event.kind in ("query_added", "query_changed") and told.query in live:
            live[told.query] = _Running(live[told.query].join, step, told.sees, told.from_step, told.exact_from)


def _check_answer(oracle: Oracle, running: _Running, result: pa.Table, step: int) -> None:
    # From `exact_from` on, what the query sees gives all that there is.
    times = result["_ts"].cast(pa.int64())
    found = Counter(zip(*(column.to_pylist() for column in (*result.columns[:-1], times)), strict=True))
    expected = oracle.answer(running.join, step, running.seen)
    assert found == expected, f"lacks {dict(expected - found)}, has too many {dict(found - expected)}"
    assert times.to_pylist() == sorted(times.to_pylist()), "not in order of time"
    if running.sees != "all":
        assert running.exact_from is not None, "it does not say from when it is exact"
        lacking = oracle.answer(running.join, step) - found
        assert all(time < running.exact_from for *_, time in lacking), f"not exact from {running.exact_from}"
