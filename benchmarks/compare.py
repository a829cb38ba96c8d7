"""The ratios of a scenario's peers, what is required of them, and whether their answers agree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from benchmarks.measurement import Measurement

Measure = Literal["steady rows a second", "seconds in all"]

AT_LEAST: dict[tuple[str, str, str], float] = {
    ("w1a", "midstream_spark", "spark_default"): 6.5,
    ("w1a", "midstream_spark", "spark_rocksdb"): 6.5,
    ("w1b", "midstream_spark", "spark_default"): 25.0,
    ("w1b", "midstream_spark", "spark_rocksdb"): 25.0,
    ("w2b", "midstream_spark", "spark_default"): 20.0,
    ("w3", "midstream_spark", "spark_default"): 4.0,
    ("w4", "midstream_spark", "spark_default"): 3.0,
    ("w5", "midstream_spark", "spark_default"): 10.0,
    ("w1b", "midstream_s3", "midstream_spark"): 1 / 1.3,
    ("w1b", "embedded_2", "embedded"): 1.7,
    ("w2b", "embedded_2", "embedded"): 1.7,
}
"""How many times another's rows a second a peer must do, by scenario, peer and other; batches of a job whose checkpoint
is on an object store may take 1.3 times as long.
"""

AT_MOST: dict[tuple[str, str, str], float] = {
    ("w1b", "embedded", "duckdb_1"): 1.0,
    ("w2b", "embedded", "duckdb_1"): 1.0,
}
"""How many times another's seconds a peer may take."""

PAIRS: tuple[tuple[str, str, Measure], ...] = (
    ("midstream_spark", "spark_default", "steady rows a second"),
    ("midstream_spark", "spark_rocksdb", "steady rows a second"),
    ("midstream_spark", "spark_tuned", "steady rows a second"),
    ("midstream_s3", "midstream_spark", "steady rows a second"),
    ("embedded", "spark_default", "steady rows a second"),
    ("embedded", "spark_rocksdb", "steady rows a second"),
    ("embedded_2", "embedded", "steady rows a second"),
    ("embedded", "duckdb_1", "seconds in all"),
    ("midstream_spark", "duckdb_2", "seconds in all"),
)
"""Who is compared with whom: rates where both run batch by batch, whole times against the offline limit."""


@dataclass(frozen=True)
class Comparison:
    """Ours over theirs, the median over the rounds of each; `required` is "" where the ratio is only reported."""

    scenario: str
    ours: str
    theirs: str
    measure: Measure
    our_value: float
    their_value: float
    required: str
    met: bool

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return self.our_value / self.their_value


def compare(scenario: str, measurements: Sequence[Measurement]) -> list[Comparison]:
    """Every comparison that the measurements allow."""
    peers = {measurement.peer for measurement in measurements}
    return [
        _comparison(scenario, measurements, ours, theirs, measure)
        for ours, theirs, measure in PAIRS
        if ours in peers and theirs in peers
    ]


def _comparison(
    scenario: str, measurements: Sequence[Measurement], ours: str, theirs: str, measure: Measure
) -> Comparison:
    our_value, their_value = value(measurements, ours, measure), value(measurements, theirs, measure)
    ratio = our_value / their_value
    required, met = "", True
    if (least := AT_LEAST.get((scenario, ours, theirs))) is not None:
        required, met = f"at least {least:.3g}", ratio >= least
    elif (most := AT_MOST.get((scenario, ours, theirs))) is not None:
        required, met = f"at most {most:.3g}", ratio <= most
    return Comparison(scenario, ours, theirs, measure, our_value, their_value, required, met)


def value(measurements: Sequence[Measurement], peer: str, measure: Measure) -> float:
    """The median of a measure over the rounds of a peer."""
    own = [measurement for measurement in measurements if measurement.peer == peer]
    return median(m.steady_rate if measure == "steady rows a second" else m.seconds for m in own)


def disagreements(measurements: Sequence[Measurement]) -> list[str]:
    """The peers whose answer is not that of the first one, each with both answers; empty when all agree."""
    if not measurements:
        return []
    first = measurements[0]
    return [
        f"{first.scenario}: {other.peer} gives {other.answer.rows:,} rows (mark {other.answer.mark}), "
        f"{first.peer} gives {first.answer.rows:,} (mark {first.answer.mark})"
        for other in measurements[1:]
        if other.answer != first.answer
    ]
