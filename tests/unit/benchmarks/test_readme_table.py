"""The README's table: what a job is compared with."""

from __future__ import annotations

from benchmarks.measurement import Answer, Batch, Measurement
from benchmarks.peers import flink
from benchmarks.readme import of_the_first, rate, rates, verdicts_of


def measured(peer: str, rows: int, thrown: int | None = None) -> Measurement:
    notes = {} if thrown is None else {flink.THROWN: thrown}
    return Measurement(peer, "w1a", (Batch(rows, 1.0), Batch(rows, 1.0)), Answer(1, "1"), notes)


def test_a_job_is_compared_with_the_best_that_flink_does() -> None:
    found = [measured("midstream_spark", 100), measured("flink", 20, 30), measured("flink_1", 25, 50)]
    assert rate(found, "flink") == 50
    (verdict,) = verdicts_of("w1a", "join", found)
    assert verdict.found == "2.00" and not verdict.met


def test_a_peer_that_did_not_run_has_no_rate() -> None:
    found = [measured("midstream_spark", 100)]
    assert rate(found, "flink") is None and rate(found, "spark_default") is None
    assert verdicts_of("w1a", "join", found) == []


def test_the_second_table_is_of_the_first_batches() -> None:
    batches = (Batch(9, 9.0), Batch(10, 1.0), Batch(7, 0.1), Batch(7, 0.1))
    found = [Measurement("midstream_spark", "w1a", batches, Answer(1, "1")), measured("spark_default", 5)]
    assert rates(found, ("spark_default",)) == ["70", "", "5", "**14.0**"]
    assert rates(of_the_first(found, 2), ("spark_default",)) == ["10", "", "5", "**2.0**"]
