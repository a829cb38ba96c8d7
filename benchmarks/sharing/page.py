"""The Markdown page."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from benchmarks.sharing.pace import ISOLATED
from benchmarks.sharing.record import Record, Report
from benchmarks.sharing.verdicts import verdicts, wrong
from benchmarks.sharing.workload import SELECTIVITY, Workload
from benchmarks.table import table
from benchmarks.verdict import verdict_table

HEAD = f"""# Many queries over one pair of streams

Written by `python -m benchmarks.sharing` (part of `make bench`). All queries join the same two streams by the same
equality; they differ in their windows, and where it says so in a filter on one stream. Windows are distributed as in
Wang §8.3, Table 8.2: *uniform*, *mostly_small* (ten of twelve up to 10 s), *small_large* (half up to 6 s, half from
24 s on), all up to 30 s. {SELECTIVITY:g} of all pairs have equal keys. *nested* filters are four thresholds whose rows
contain each other, *apart* four ranges of which none contains another; half of all rows pass one on average.

`off` gives every query a join of its own (Wang's *isolated*), `pull_up` joins once with the largest window and lets a
router decide for each result and query, `push_down` splits the streams by filter, `mem_opt` cuts the state at every
window, `cpu_opt` where the measured costs say so, `auto` as the engine thinks best. All contestants live in one process
and take each step in turn, another one first each time, so that what disturbs the machine disturbs them alike. The
windows are full before anything is measured; a step is one second of the streams; the time is the median of the
measured steps; Python's garbage collector runs between steps, not in them. All results of the measured steps are
compared by number and by a sum of hashes. How many times faster one is than another is the median over the steps.
"""


def page(report: Report) -> str:
    """The page; that of a quick run shows no verdicts and says so."""
    parts = [HEAD]
    if report.quick:
        parts.append("**A quick run on small inputs: these times mean nothing.**\n")
    parts.append("Measured: " + ", ".join(f"{name} {fact}" for name, fact in report.machine.items()) + ".\n")
    if wrong(report):
        parts += ["## WRONG\n", "\n".join(f"- {line}" for line in wrong(report)) + "\n"]
    if not report.quick:
        parts += ["## What must hold\n", _verdicts(report)]
    parts += ["## The cost of a query that wants little\n", _scaling(report)] if report.scalings else []
    parts += ["## A query more\n", _newcomers(report)] if report.newcomers else []
    parts += ["## On Spark\n", _spark(report)] if report.spark else []
    parts += ["## Embedded, every mode\n", *(_workload(report, workload) for workload in report.workloads())]
    return "\n".join(parts)


def _verdicts(report: Report) -> str:
    return verdict_table(verdicts(report))


def _scaling(report: Report) -> str:
    said = """Ten queries and a thousand over the same rows, with the same longest window and equally many results in
total (within a percent), side by side.
"""
    rows = (
        (s.mode, f"{s.rate:,}", f"{s.results[0]:,}", _time(median(s.few_seconds)), _time(median(s.many_seconds)),
         f"**{s.ratio:.2f}**", f"{s.each * 1e6:,.0f} µs")
        for s in report.scalings
    )  # fmt: skip
    names = ("mode", "rows/s a stream", "results a step", "10 queries", "1,000 queries", "ratio", "each query more")
    return f"{said}\n{table(names, 'lrrrrrr', rows)}"


def _newcomers(report: Report) -> str:
    said = """A query is added to a thousand that run: the time to ask for it, the step that takes it, and the median of
the undisturbed steps around.
"""
    rows = (
        (n.host, n.mode, n.what, _time(n.asked), _time(n.step), _time(median(n.around)), f"**{_time(n.cost)}**")
        for n in report.newcomers
    )
    return f"{said}\n{table(('host', 'mode', 'newcomer', 'asked', 'its step', 'around', 'cost'), 'lllrrrr', rows)}"


def _spark(report: Report) -> str:
    first = report.spark[0]
    said = f"""`local[2]`. One job of midstream (`sharing="auto"`, two lanes) with all queries, and Spark's own
stream-stream join with one streaming query for each of them, in the same session: the same files, {first.rate:,} rows
a second of each stream in steps of {first.stream_seconds:g} s, checkpoints, Parquet out, uniform windows. A step is
done when the last query has committed it. Whoever takes longer for a step than its rows took to come does not keep up,
and is given no more queries.
"""
    rows = (
        (
            f"{run.queries:,}",
            run.contender,
            _time(run.typical) if run.typical is not None else "",
            f"{run.results:,}" if run.results else "",
            run.wrong or run.stopped or "keeps up",
        )
        for run in report.spark
    )
    return f"{said}\n{table(('queries', '', 'a step', 'results in all', ''), 'rlrrl', rows)}"


def _workload(report: Report, workload: Workload) -> str:
    records = report.of(workload)
    rate = next(iter(records.values())).rate
    names = ("mode", "a step", "isolated / it", "results a step", "state rows", "comparisons a step", "")
    drawn = table(names, "lrrrrrl", (_record(record, records.get(ISOLATED)) for record in records.values()))
    return f"### {workload.name}\n\n{rate} rows a second of each stream.\n\n{drawn}"


def _record(record: Record, isolated: Record | None) -> Sequence[str]:
    if record.typical is None:
        return (record.mode, "", "", "", "", "", record.remark)
    times = isolated.over(record) if isolated is not None else None
    ratio = f"{times:.1f}" if times is not None else ""
    return (
        record.mode, _time(record.typical), ratio, f"{record.results:,}", f"{record.state_rows:,}",
        f"{record.comparisons:,}", record.remark,
    )  # fmt: skip


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if abs(seconds) < 0.1 else f"{seconds:.2f} s"
