"""Sequences of everything that moves kept rows to other lanes or nodes, drawn; what comes after meets what was kept.

Queries of every key type run beside each other and are spread over nodes and taken back, while lanes become more or
fewer, queries share otherwise, plans migrate, and the job starts again or is forked.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence as Several
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random

import pyarrow as pa

import midstream as ms
from midstream.migration.strategy_contract import discovered
from midstream.ring.spreading import spreadings
from midstream.sharing.schemes.scheme_contract import schemes
from tests.oracle.answer import Answer
from tests.oracle.arrival import Lifetime
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.drive import Case, start
from tests.property.rows import Shape, cut, draw_rows

KEYS = (
    "A.k = B.k", "A.n = B.n", "A.k = B.n", "A.s = B.s", "A.d = B.d", "A.d = B.n", "A.m = B.m", "A.m = B.k",
    "A.day = B.day", "A.ok = B.ok", "A.ts = B.ts", "A.day = B.ts", "LOWER(A.s) = LOWER(B.s)", "A.k + 1 = B.n",
)  # fmt: skip
"""Equalities of two streams: every type, types compared with each other, keys that are computed."""

STEPS = 9
WINDOW = 14
SPAN = 44
"""In seconds: rows of a step meet those of about three steps before."""


@dataclass(frozen=True)
class Change:
    """What is done before a step: `what` with its arguments."""

    step: int
    what: str
    arguments: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.step}: {self.what}{self.arguments}"


@dataclass(frozen=True)
class Sequence:
    """A case with its changes, in order of their steps."""

    seed: int
    case: Case
    lanes: int
    changes: tuple[Change, ...]

    @cached_property
    def expected(self) -> dict[str, Answer]:
        """The oracle's answers."""
        return self.case.expected()

    def check(self, name: str, found: Several[pa.Table | None]) -> None:
        """Fail unless each step of a query is what the oracle says."""
        told = "; ".join(map(str, self.changes))
        assert_each_step_same(found, self.expected[name], f"sequence {self.seed}, {self.lanes} lanes, {told}: {name}")


def join(*conditions: tuple[str, str]) -> QuerySpec:
    names = sorted(set("".join(names for _, names in conditions)))
    sources = tuple(SourceSpec(name, name, range=WINDOW * SECOND) for name in names)
    items = tuple(Item(f"{name}.u", name.lower()) for name in names)
    return QuerySpec(sources, items, tuple(Condition(text, tuple(names)) for text, names in conditions))


@cache
def drawn(seed: int) -> Sequence:
    """The sequence of a seed."""
    rng = Random(f"sequence {seed}")
    disorder = rng.choice((0, 0, 3))
    streams, rows = draw_rows(
        Shape(seed=seed, sizes=(26, 26, 14), span=SPAN, keys=3, nulls=0.08, disorder=disorder, time=pa.timestamp("us"))
    )
    other = rng.choice(KEYS)
    specs = {
        "q": join((rng.choice(KEYS), "AB")),
        "other": join((other, "AB"), ("A.u <> B.u", "AB")),
        "twin": join((other, "AB")),
        "chain": join(("A.k = B.k", "AB"), ("B.k = C.n", "BC")),
        "hops": join(("A.k = B.k", "AB"), ("B.s = C.s", "BC")),
    }
    lives = tuple(Lifetime(name, spec) for name, spec in specs.items())
    cuts = tuple(100 * at // STEPS for at in range(1, STEPS))
    case = Case(streams, cut(streams, rows, cuts), lives, not disorder)
    changes = [change for step in range(1, STEPS) for change in changes_of(rng, step, list(specs))]
    return Sequence(seed, case, rng.randint(1, 5), tuple(accepted(case, changes)))


def changes_of(rng: Random, step: int, names: list[str]) -> list[Change]:
    found = []
    for _ in range(rng.choice((0, 1, 1, 2, 2))):
        name, kind = rng.choice(names), rng.random()
        if kind < 0.3:
            found.append(Change(step, "spread", (name, rng.choice(list(spreadings())), rng.randint(1, 4))))
        elif kind < 0.55:
            found.append(Change(step, "off", (name,)))
        elif kind < 0.7:
            found.append(Change(step, "rescale", (rng.randint(1, 5),)))
        elif kind < 0.75:
            found.append(Change(step, "reshare", (rng.choice([*schemes()]),)))
        elif kind < 0.88:
            plan = rng.choice(("((B C) A)", "((A B) C)", "(A (B C))") if name in ("chain", "hops") else ("(B A)",))
            found.append(Change(step, "migrate", (name, plan, rng.choice([*discovered()]))))
        elif kind < 0.95:
            found.append(Change(step, "restart"))
        else:
            found.append(Change(step, "fork"))
    return found


def accepted(case: Case, changes: list[Change]) -> list[Change]:
    """The changes that can be done: the engine refuses others, as a plan that a query does not have."""
    engine, found = begun(case, 1), []
    for step, tables in enumerate(case.steps):
        for change in (one for one in changes if one.step == step):
            try:
                engine = made(engine, change)
            except ms.MidstreamError:
                continue
            found.append(change)
        engine.push(dict(tables))
    return found


def begun(case: Case, lanes: int) -> ms.Engine:
    """An engine with the queries of a case."""
    engine = start(case.streams, lanes=lanes)
    for life in case.queries:
        engine.add_query(life.name, life.spec.cql())
    return engine


def made(engine: ms.Engine, change: Change) -> ms.Engine:
    """An engine after a change; raises where it is refused."""
    if change.what in ("restart", "fork"):
        folder = Path(tempfile.mkdtemp(prefix="midstream-test-"))
        try:
            engine.save(folder / "saved")
            return ms.Engine.load(folder / "saved")
        finally:
            shutil.rmtree(folder)
    what, arguments = change.what, change.arguments
    if what == "spread":
        engine.spread(*arguments)  # type: ignore[arg-type]
    elif what == "off":
        engine.spread(arguments[0], "off")  # type: ignore[arg-type]
    elif what == "rescale":
        engine.rescale(lanes=arguments[0])  # type: ignore[arg-type]
    elif what == "reshare":
        engine.reshare(arguments[0])  # type: ignore[arg-type]
    else:
        name, plan, strategy = arguments
        engine.migrate(name, plan=plan, strategy=strategy)  # type: ignore[arg-type]
    return engine


def run_embedded(sequence: Sequence) -> None:
    """Run a sequence on the embedded engine, each step against the oracle."""
    engine = begun(sequence.case, sequence.lanes)
    found: dict[str, list[pa.Table | None]] = {life.name: [] for life in sequence.case.queries}
    for step, tables in enumerate(sequence.case.steps):
        for change in sequence.changes:
            if change.step == step:
                engine = made(engine, change)
        for name, table in engine.push(dict(tables)).items():
            found[name].append(table)
    for name, output in found.items():
        sequence.check(name, output)
