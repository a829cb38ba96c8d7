"""Whose turn it is: a thousand queries are all reviewed, as fast as the budget of a step lets them, and again."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from midstream.model.manifest import Manifest, QueryEntry, StreamProgress
from midstream.model.optimization import Optimization
from midstream.model.schema import StreamSchema
from midstream.step.reviewing.turns import MOST_REVIEWS, due

SECOND, QUERIES = 1_000_000, 1_000
COLUMNS = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
SQL = "SELECT A.k FROM A, B, C WHERE A.k = B.k AND B.k = C.k WINDOW 5 SECONDS"


def test_of_a_thousand_queries_none_starves() -> None:
    """Those with a short time between reviews are always due, and hold nobody up."""
    names = [f"q{at:04d}" for at in range(QUERIES)]
    often = replace(Manifest().optimizer, review=SECOND)
    manifest = Manifest(
        step=5,
        streams={name: StreamSchema(name, COLUMNS, "ts") for name in "ABC"},
        progress={"A": StreamProgress(greatest=0)},
        queries={name: QueryEntry(SQL, "((A B) C)", since=0) for name in names},
        optimizations={name: Optimization(often if at % 2 else None, reviewed=0) for at, name in enumerate(names)},
    )
    turns: dict[str, list[int]] = {name: [] for name in names}
    for step in range(QUERIES // MOST_REVIEWS + 50):
        now = (step + 20) * SECOND
        chosen = [one.lead for one in due(manifest, now)]
        assert len(chosen) == MOST_REVIEWS
        for name in chosen:
            turns[name].append(step)
        reviewed = {name: replace(manifest.optimizations[name], reviewed=now) for name in chosen}
        manifest = replace(manifest, optimizations={**manifest.optimizations, **reviewed})
    assert max(found[0] for found in turns.values()) < QUERIES // MOST_REVIEWS, "somebody starves"
    assert max(map(len, turns.values())) == 2 and sum(map(len, turns.values())) == QUERIES + 50 * MOST_REVIEWS
