"""Who competes: one lane, every spread that is there on every number of nodes, and systems beside us.

Spreads are discovered, so a new one has its rows by being there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import midstream as ms
from benchmarks.peers import PEERS
from benchmarks.ring.load import Load
from benchmarks.ring.scenarios import ALONE, FORMER, PLAIN, QUERY, THEIRS, RingScenario
from benchmarks.scenarios import Scenario
from midstream.ring.spreading import spreadings

DUCKDB = "duckdb_2"
"""A peer of `benchmarks.run`, as `FORMER` and `THEIRS` are."""

TOGETHER = 2
"""As many nodes as the machine has cores."""

Kind = Literal["plain", "spread", "joins", "rival"]


@dataclass(frozen=True)
class Contestant:
    """Someone who answers: a query without a spread, one that is spread over `nodes`, a query for each of its `joins`
    that is, or another system.
    """

    name: str
    kind: Kind = "spread"
    nodes: int = 1

    @property
    def title(self) -> str:
        """What the page calls it."""
        if self.kind == "rival":
            return PEERS[self.name][0]
        return f"{self.name}, a query for each join" if self.kind == "joins" else self.name


NO_SPREAD, ON_SPARK, OFFLINE = Contestant(PLAIN, "plain"), Contestant(THEIRS, "rival"), Contestant(DUCKDB, "rival")
OTHERS = {PLAIN: NO_SPREAD, ALONE: Contestant(ALONE), FORMER: Contestant(FORMER, "rival"), THEIRS: ON_SPARK}
"""Whom a spread is judged against, by name."""


def every_spread(asked: RingScenario) -> list[str]:
    """The names of all spreads, or of those that the scenario is about."""
    return [name for name in spreadings() if not asked.schemes or name in asked.schemes]


def on_embedded(asked: RingScenario, load: Load) -> Iterator[Contestant]:
    """All spreads on all numbers of nodes; `one_lane` has one node, however many are named."""
    yield NO_SPREAD
    yield Contestant(ALONE)
    if asked.joins:
        yield Contestant("psp_d", "joins", TOGETHER)
    for name in every_spread(asked):
        if name != ALONE:
            yield from (Contestant(name, nodes=nodes) for nodes in load.nodes)
    yield OFFLINE


def on_spark(asked: RingScenario, load: Load) -> Iterator[Contestant]:
    """What is judged on as many nodes as there are cores, and where it is asked in full every other spread too.

    Rounds are in turns, each in the opposite order of the one before.
    """
    best = preferred(asked, load)
    ours = [OTHERS[name] for name in asked.required if name != THEIRS]
    joins = [Contestant(best, "joins", TOGETHER)] if asked.joins else []
    judged = list(dict.fromkeys([NO_SPREAD, Contestant(best, nodes=TOGETHER), *joins, *ours]))
    yield from judged
    if asked.rivals:
        yield ON_SPARK
    yield OFFLINE
    if load.quick:
        return
    if asked.in_full:
        if OTHERS[ALONE] not in judged:
            yield OTHERS[ALONE]
        yield from (Contestant(best, nodes=nodes) for nodes in load.nodes if nodes != TOGETHER)
        others = [name for name in every_spread(asked) if name not in (best, ALONE)]
        yield from (Contestant(name, nodes=TOGETHER) for name in others)
    for number in range(1, asked.rounds):
        yield from reversed(judged) if number % 2 else judged


def preferred(asked: RingScenario, load: Load) -> str:
    """The spread that is judged: the one that `auto` takes, unless another is named."""
    if asked.judged:
        return asked.judged
    engine = engine_for(asked, asked.on("embedded", load.quick), Contestant("auto", nodes=TOGETHER))
    entry = engine.manifest.queries[QUERY].nodes
    assert entry is not None
    return entry.scheme


def engine_for(asked: RingScenario, scenario: Scenario, contestant: Contestant) -> ms.Engine:
    """An engine with the query, spread so; raises where it cannot be."""
    engine = ms.Engine()
    for stream in scenario.streams:
        engine.create_stream(stream, scenario.schema(stream), timestamp="ts")
    for name, text in texts(asked, scenario, contestant).items():
        engine.add_query(name, text, **spread_of(asked, contestant))
    engine.push({})
    return engine


def texts(asked: RingScenario, scenario: Scenario, contestant: Contestant) -> dict[str, str]:
    """The queries of a contestant by name, in the order in which they read each other; the last one answers."""
    return dict(asked.joins) if contestant.kind == "joins" else {QUERY: scenario.midstream}


def spread_of(asked: RingScenario, contestant: Contestant) -> Mapping[str, Any]:
    """How each of its queries is spread, as arguments of `add_query` and of a job's `query`."""
    if contestant.kind == "plain":
        return {}
    options = asked.options.get(contestant.name)
    return {"spread": contestant.name, "nodes": contestant.nodes, "spread_options": options}
