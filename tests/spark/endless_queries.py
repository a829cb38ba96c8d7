"""What the job that is killed at random asks beside joins, and what it must answer: sessions, outer joins, the first
rows, answers that others read, a static table that is refreshed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from midstream.checkpoint.reader import Checkpoint, upcoming
from midstream.commands.set_table import SetTable
from midstream.pipeline.static_tables import set_table
from midstream.storage.files import FileStore
from tests.crash_case import MATCHED
from tests.oracle.answer import Answer, answers
from tests.oracle.arrival import Lifetime, Step, arrive
from tests.oracle.outer_spec import OuterSpec
from tests.oracle.ranked_spec import RankedSpec
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec, StreamSpec
from tests.property.drive import Case
from tests.property.features.sessions import Sessions, expected
from tests.property.test_answers_as_streams import TIMED, Expected, equal

VISITS = Sessions(
    (SourceSpec("A", "A"),),
    (Item("A.k", "k"), Item("COUNT(*)", "n"), Item("MAX(A.u)", "u")),
    group_by=("A.k",),
    gap=SECOND,
)
UNMATCHED = OuterSpec(
    (SourceSpec("A", "A"), SourceSpec("B", "B")),
    (Item("A.u", "a"), Item("B.u", "b")),
    (Condition("A.k = B.k", ("A", "B")), Condition("B.n > 3", ("B",))),
    written="LEFT JOIN",
    windows=(SECOND, 2 * SECOND),
)
BEST = RankedSpec(
    (SourceSpec("B", "B", range=3 * SECOND),), (Item("B.k", "k"), Item("B.u", "u")), group_by=("B.k",),
    every=2 * SECOND,
    order=(("B.n", True),), limit="{rank} <= 2",
)  # fmt: skip
ALONE: dict[str, QuerySpec] = {"matched": MATCHED, "unmatched": UNMATCHED, "best": BEST}
"""Queries over streams whose answers the oracle knows."""

READ = {
    "pairs": QuerySpec(
        tuple(SourceSpec(name, name, SECOND) for name in "AB"),
        (Item("A.k", "k"), Item("B.n", "n"), Item("A.u + B.u", "u"), TIMED),
        (equal("A", "B"),),
    ),
    "threes": QuerySpec(
        (SourceSpec("Q", "pairs", SECOND), SourceSpec("R", "C", SECOND)),
        (Item("Q.k", "k"), Item("R.n", "n"), Item("Q.u + R.u", "u"), TIMED),
        (equal("Q", "R"),),
    ),
    "totals": QuerySpec(
        (SourceSpec("Q", "threes", 2 * SECOND),),
        (Item("Q.k", "k"), Item("COUNT(*)", "n"), Item("MAX(Q.u)", "u"), TIMED),
        group_by=("Q.k",),
        every=2 * SECOND,
    ),
}
"""Each reads the answers of the one before it."""

LOOKED_UP = "SELECT A.u AS u, r.w AS w, r._version AS version FROM A JOIN rates AS r ON A.k = r.k"
FIRST, KEYS = 1, 6

TEXTS = {name: spec.cql() for name, spec in (ALONE | {"visits": VISITS} | READ).items()} | {"looked_up": LOOKED_UP}
"""All of them as they are asked, in the order in which they are added."""


def rates(number: int) -> pa.Table:
    """The table as it is refreshed for this time: how many rows it has says which one it is."""
    keys = [place % KEYS for place in range(number)]
    return pa.table({"k": pa.array(keys, pa.int64()), "w": pa.array([100 * number + k for k in keys], pa.int64())})


def refreshed(kept: str, number: int) -> SetTable:
    """The command that refreshes the table of a job."""
    checkpoint = Checkpoint.open(f"{kept}/checkpoint")
    manifest, store = checkpoint.manifest(), FileStore(checkpoint.folders.chunks)
    known = upcoming(manifest, checkpoint.folders).tables
    return set_table("rates", rates(number), known, store, manifest.step)


def more_answers(
    streams: tuple[StreamSpec, ...], steps: tuple[Step, ...], events: Sequence[Mapping[str, Any]]
) -> dict[str, Answer]:
    """What all of them must answer; the versions of the table are known from the job's events."""
    found = answers(streams, steps, [Lifetime(name, spec) for name, spec in ALONE.items()])
    found["visits"] = expected(Case(streams, steps, (Lifetime("visits", VISITS),)))
    read = [Lifetime(name, spec) for name, spec in READ.items()]
    oracle = Expected(streams, arrive(streams, steps, read[:1]))
    found |= {query.name: oracle.of(query) for query in read}
    found["looked_up"] = _looked_up(steps, [event for event in events if event["event"] == "table_set"])
    return found


def _looked_up(steps: Sequence[Step], versions: Sequence[Mapping[str, Any]]) -> Answer:
    """Each row of A with the rows of the version that stood in its step."""
    rows: list[tuple[int, int, int]] = []
    times: list[int] = []
    numbers: list[int] = []
    for number, step in enumerate(steps):
        stands = [event for event in versions if event["step"] <= number]
        if not stands:
            continue
        held = rates(stands[-1]["rows"]).to_pylist()
        for row in step["A"].to_pylist():
            same = [other["w"] for other in held if other["k"] == row["k"]]
            rows += [(row["u"], w, stands[-1]["version"]) for w in same]
            at = pa.scalar(row["ts"], pa.timestamp("us")).cast(pa.int64()).as_py()
            times, numbers = times + [at] * len(same), numbers + [number] * len(same)
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    table = pa.table(
        {name: pa.array(values, pa.int64()) for name, values in zip(("u", "w", "version"), columns, strict=True)}
    )
    return Answer(table, times, numbers, frozenset())
