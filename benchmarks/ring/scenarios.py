"""What is asked: joins that no key runs through, of two to five streams, cheap and expensive to ask about.

W2 and W3 are those of `benchmarks.run`. The others join a first stream with each of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.ring.predicates import WITHIN_KM_SQL
from benchmarks.ring.star import Near, duckdb_text, join_by_join, midstream_text, spark_text
from benchmarks.scenarios import SCENARIOS as MEASURED
from benchmarks.scenarios import Scenario

QUICK_ROWS, QUICK_BATCHES = 200, 4
SPARK_BATCHES = 8

ASKED_OF_HOPS, ROWS_OF_HOPS = "two_keys_5", 10
"""The scenario by which it is measured what hops cost, and how many rows a stream brings in a batch there."""


@dataclass(frozen=True)
class RingScenario:
    """A question, and how it is spread.

    `options` are those of a scheme, by its name. `schemes` are the only ones to be measured, where some are named.
    `embedded_rows` is how many rows a stream brings in a batch to the embedded engine, which counts and gains nothing.
    `joins` are texts that ask the same with a query for each join, by name, the last of which answers.
    `judged` is the spread that verdicts are about, where it is not the one that `auto` takes.
    `required` is how many times a contestant's rows a second the judged spread must take on two nodes, on Spark. There
    `rounds` are those of the contestants of ours that a verdict is about, `in_full` says whether every spread and
    number of nodes is measured too, and `rivals` whether Spark's own join is.
    """

    scenario: Scenario
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    schemes: tuple[str, ...] = ()
    embedded_rows: int = 0
    joins: Mapping[str, str] = field(default_factory=dict)
    judged: str = ""
    required: Mapping[str, float] = field(default_factory=dict)
    rounds: int = 1
    in_full: bool = False
    rivals: bool = True

    @property
    def name(self) -> str:
        """The scenario's name."""
        return self.scenario.name

    def on(self, host: str, quick: bool) -> Scenario:
        """What a host is given."""
        found = self.scenario
        if host == "spark":
            found = replace(found, batches=SPARK_BATCHES)
        elif self.embedded_rows:
            found = replace(found, rows=min(found.rows, self.embedded_rows))
        return replace(found.quick(), rows=min(found.rows, QUICK_ROWS), batches=QUICK_BATCHES) if quick else found


def _star(
    name: str, title: str, streams: Mapping[str, tuple[str, ...]], near: Near, rows: int, keys: int = 0
) -> Scenario:
    return Scenario(
        name=name, title=f"{title}, {rows:,} rows a stream and batch", streams=streams, rows=rows, keys=keys,
        midstream=midstream_text(streams, near), duckdb=duckdb_text(streams, near),
        spark=spark_text(streams, near, rewritten=True),
        spark_as_written=spark_text(streams, near, rewritten=False) if near.bucket else "",
    )  # fmt: skip


def _floors(value: str, unit: str) -> dict[str, str]:
    """Buckets as wide as a reach: what is near lies in the same one or beside it."""
    bucket = f"floor({value} / {unit})"
    return {"bucket": bucket, "buckets": f"sequence({bucket} - 1, {bucket} + 1)"}


KEYS = Near("A.{k} = {o}.{k}")

THETA = Near("A.v + {o}.v < 2e-2", spark="A.v + {o}.v < 0.02D", bucket="1", buckets="array(1)")
"""An inequality leaves no buckets: all rows must go to one task."""

BAND = Near("ABS(A.v - {o}.v) < 3e-4", spark="abs(A.v - {o}.v) < 0.0003D", **_floors("v", "0.0003D"))

DISTANCE = Near("(A.x - {o}.x) * (A.x - {o}.x) + (A.y - {o}.y) * (A.y - {o}.y) < 10000", **_floors("x", "100"))

_PLACES = {"lat": "A.x * 1e-3", "lon": "A.y * 1e-3", "lat2": "{o}.x * 1e-3", "lon2": "{o}.y * 1e-3", "most": "5"}
GREAT_CIRCLE = Near(
    "within_km({lat}, {lon}, {lat2}, {lon2}, 5e0)".format(**_PLACES),
    duckdb=WITHIN_KM_SQL.format(**_PLACES),
    spark=WITHIN_KM_SQL.format(**_PLACES).replace("1e-3", "0.001D"),
    **_floors("x", "50"),
)
"""Five kilometres are 0.045 degrees of latitude, so that buckets of 0.05 degrees hold them."""

QUERY = "answer"
"""The query that answers."""

PLAIN, ALONE, FORMER, THEIRS = "no spread", "one_lane", "former_lane", "spark_default"
"""Contestants: today's one lane, one node with the probing orders of the spreads, one lane before there were spreads,
and Spark's own join.
"""

XY = ("x", "y")
AROUND_B = {"atr": {"master": "B"}}
"""W2 ties its streams to B: a scheme that begins with another joins what nothing ties."""

W2 = RingScenario(
    replace(MEASURED["w2a"], name="two_keys"),
    AROUND_B,
    judged="hash_hops",
    required={PLAIN: 1.0, FORMER: 1.0},
    rounds=5,
    in_full=True,
)
W2_LARGE = RingScenario(
    replace(MEASURED["w2b"], name="two_keys_large"),
    schemes=("one_lane", "hash_hops"),
    judged="hash_hops",
    required={PLAIN: 1.4, FORMER: 1.4},
    rounds=2,
    rivals=False,
)
FIVE = _star(
    "two_keys_5", "A.x = B.x AND A.y = C.y AND A.x = D.x AND A.y = E.y",
    {"A": XY, "B": ("x",), "C": ("y",), "D": ("x",), "E": ("y",)}, KEYS, 5_000, 20_000,
)  # fmt: skip
W3 = RingScenario(replace(MEASURED["w3"], name="band"), required={THEIRS: 3.0}, rounds=2)
BAND_4 = _star("band_4", "B.v, C.v and D.v less than 0.0003 from A.v", dict.fromkeys("ABCD", ()), BAND, 2_000)
THETA_3 = _star("theta_3", "A.v + B.v < 0.02 AND A.v + C.v < 0.02", dict.fromkeys("ABC", ()), THETA, 1_000)
DISTANCE_3 = _star(
    "distance_3", "places in a plane, B and C less than 100 from A", dict.fromkeys("ABC", XY), DISTANCE, 1_500, 10_000
)
GREAT_CIRCLE_2 = _star(
    "great_circle", "places within 5 km by a user's predicate", dict.fromkeys("AB", XY), GREAT_CIRCLE, 2_500, 10_000
)
GREAT_CIRCLE_3 = _star(
    "great_circle_3", "places, B and C within 5 km of A by a user's predicate", dict.fromkeys("ABC", XY),
    GREAT_CIRCLE, 2_500, 10_000,
)  # fmt: skip

SCENARIOS: dict[str, RingScenario] = {
    one.name: one
    for one in (
        W2,
        W2_LARGE,
        RingScenario(FIVE, judged="hash_hops"),
        W3,
        RingScenario(BAND_4),
        RingScenario(THETA_3),
        RingScenario(DISTANCE_3, embedded_rows=500),
        RingScenario(GREAT_CIRCLE_2, embedded_rows=1_000, required={PLAIN: 1.7}, rounds=3),
        RingScenario(
            GREAT_CIRCLE_3,
            embedded_rows=500,
            joins=join_by_join(dict.fromkeys("ABC", XY), GREAT_CIRCLE, QUERY),
            required={PLAIN: 1.7},
            rounds=3,
            in_full=True,
        ),
    )
}
"""Every scenario by name, in the order in which they run."""
