"""What must hold, read off the records."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.sharing import newcomer, scaling
from benchmarks.sharing.pace import BEST, ISOLATED
from benchmarks.sharing.record import Report
from benchmarks.sharing.workload import Workload
from benchmarks.verdict import Verdict

AT = 36
FASTER = {ISOLATED: 5.0, "pull_up": 1.0}
"""By how much `cpu_opt` must beat these at 36 queries."""


def verdicts(report: Report) -> list[Verdict]:
    """Every requirement that the report has figures for."""
    return [*_faster(report), *_memory(report), *_scaling(report), *_newcomers(report)]


def wrong(report: Report) -> list[str]:
    """What must not be, whatever the times: answers that differ, and modes refused where nothing may be refused."""
    found = [f"{record.workload.name}, {record.mode}: {record.wrong}" for record in report.records if record.wrong]
    found += [
        f"{record.workload.name}, {record.mode}: refused: {record.refused}"
        for record in report.records
        if record.refused and record.mode != "push_down"
    ]
    return found + [f"{run.queries} on Spark, {run.contender}: {run.wrong}" for run in report.spark if run.wrong]


def _faster(report: Report) -> Iterator[Verdict]:
    for workload in report.workloads():
        records = report.of(workload)
        best = records.get(BEST)
        if workload.queries != AT or best is None:
            continue
        for rival, times in FASTER.items():
            ratio = records[rival].over(best) if rival in records else None
            if ratio is not None:
                required = f"at least {times:g}" if times > 1 else "more than 1"
                met = ratio >= times if times > 1 else ratio > times
                yield Verdict(f"{workload.name}: {rival} / {BEST}, time of a step", f"{ratio:.2f}", required, met)


def _memory(report: Report) -> Iterator[Verdict]:
    """Theorem 5: without filters the state of all queries is that of the one with the largest window."""
    for workload in report.workloads():
        own = report.of(workload).get("mem_opt")
        alone = report.of(Workload(1)).get("mem_opt")
        if workload.queries == 1 or workload.filters != "none" or own is None or alone is None:
            continue
        if own.seconds and own.rate == alone.rate:
            what = f"{workload.name}: state rows with mem_opt"
            found, required = f"{own.state_rows:,}", f"{alone.state_rows:,}, those of the largest alone"
            yield Verdict(what, found, required, own.state_rows == alone.state_rows)


def _scaling(report: Report) -> Iterator[Verdict]:
    for run in report.scalings:
        if run.required:
            what = f"{run.mode}: {run.many:,} queries / {run.few} with {run.results[0]:,} results a step in all, time"
            yield Verdict(what, f"{run.ratio:.2f}", f"at most {scaling.ALLOWED:g}", run.ratio <= scaling.ALLOWED)


def _newcomers(report: Report) -> Iterator[Verdict]:
    for run in report.newcomers:
        what = f"{run.host}, {run.mode}, added to {run.queries:,}: {run.what}, beyond the step"
        yield Verdict(what, f"{run.cost:.2f} s", f"below {newcomer.ALLOWED:g} s", run.cost < newcomer.ALLOWED)
