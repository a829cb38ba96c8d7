"""What must hold: answers are equal, and `adaptive` costs little more than what nobody can know beforehand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.optimizer.contestants import SCHEDULE
from benchmarks.optimizer.record import Record, Report
from benchmarks.optimizer.scenarios import SCENARIOS

JUDGED = "adaptive"

OF_SCHEDULE = 1.15
"""Where data drift: so many times the work of the best schedule."""

OF_BEST = {"steady": 1.03, "flapping": 1.3}
"""Where no other plan comes to stay: so many times the work of the best plan that is kept."""

WORK, REVIEWED = "work", "work with reviews"

FROM_WORST, REVIEWS, GAP = 1.1, 3, 1.2
"""Begun with the worst plan: so many times the best one's work, after so many reviews, with such an output gap."""


@dataclass(frozen=True)
class Verdict:
    """One requirement and what was found."""

    scenario: str
    what: str
    found: str
    required: str
    met: bool


def best_fixed(records: Sequence[Record]) -> Record:
    """The plan that would have cost least of those that were kept."""
    return min((record for record in records if record.kind == "fixed"), key=lambda record: record.joined)


def best(records: Sequence[Record]) -> float:
    """The least work that anybody could have done who knows the future."""
    schedule = [record.joined for record in records if record.contestant == SCHEDULE]
    return min([best_fixed(records).joined, *schedule])


def wrong(records: Sequence[Record]) -> Iterator[str]:
    """What must not be: a failure, or answers that differ."""
    done = [record for record in records if not record.failed]
    for record in records:
        if record.failed:
            yield f"{record.scenario}, {record.contestant}: {record.failed}"
        elif (record.results, record.mark) != (done[0].results, done[0].mark):
            answers = f"{record.results:,} results, {done[0].contestant} has {done[0].results:,}"
            yield f"{record.scenario}, {record.contestant}: another answer ({answers})"


def verdicts(report: Report) -> list[Verdict]:
    """Every requirement on the embedded engine; on Spark steps are too few for them."""
    if report.host != "embedded" or report.quick:
        return []
    return [line for name in report.scenarios for line in _of(report.of(name))]


def _of(records: Sequence[Record]) -> Iterator[Verdict]:
    own = next((record for record in records if record.contestant == JUDGED and not record.failed), None)
    if own is None:
        return
    scenario, fixed = SCENARIOS[own.scenario], best_fixed(records)
    if scenario.begins == "worst":
        yield from _from_worst(own, fixed, records)
    elif scenario.kind == "drifting":
        for what, work in ((WORK, own.joined), (REVIEWED, own.total)):
            yield _at_most(own, f"{what} / best schedule", work / best(records), OF_SCHEDULE)
            yield _at_most(own, f"{what} / best plan kept", work / fixed.joined, 1.0)
    else:
        for what, work in ((WORK, own.joined), (REVIEWED, own.total)):
            yield _at_most(own, f"{what} / best plan kept", work / fixed.joined, OF_BEST[scenario.kind])
        if scenario.kind == "steady":
            yield Verdict(own.scenario, "switches", str(len(own.switches)), "0", not own.switches)


def _from_worst(own: Record, fixed: Record, records: Sequence[Record]) -> Iterator[Verdict]:
    worst = next(record for record in records if record.kind == "fixed" and record.contestant == own.begins)
    last = len(own.work) // 3
    reviewed = sum(step <= own.switches[0][0] for step in own.reviews) if own.switches else len(own.reviews)
    yield Verdict(own.scenario, "reviews until it moves", str(reviewed), f"at most {REVIEWS}", reviewed <= REVIEWS)
    yield _at_most(own, "work at the end / best plan", sum(own.work[-last:]) / sum(fixed.work[-last:]), FROM_WORST)
    yield _at_most(own, "output gap / without a change", own.gap / worst.gap if worst.gap else 1.0, GAP)


def _at_most(own: Record, what: str, found: float, required: float) -> Verdict:
    return Verdict(own.scenario, what, f"{found:.3f}", f"at most {required:g}", found <= required)
