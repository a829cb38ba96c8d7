"""The Markdown page over the reports of all hosts."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.optimizer.record import Record, Report
from benchmarks.optimizer.scenarios import SCENARIOS
from benchmarks.optimizer.verdicts import best, best_fixed, verdicts, wrong

HEAD = """# Who decides the plan, and what that saves

Written by `python -m benchmarks.optimizer` (part of `make bench`). In every scenario the same rows are handed over in
the same steps to plans that are kept all the time, to every policy of the optimizer (mode `auto`), and to the best
schedule, which only somebody who knows the future can follow. The results of all are compared by number and by a sum of
hashes.

*Work* is what the engine counted (rows that probe, comparisons, rows made, inserted, moved and routed), migrations
included, in milliseconds by the optimizer's units: it is the same on every machine. *Regret* is that over the work of
the best schedule, or of the best plan kept where that took less. Reviews are in no counter; *with reviews* they have
the share in the work that they have in the processor's time (on Spark in the wall clock of the steps), looks between
reviews included. All settings are the default ones but for the mode and the time between reviews. *Seconds* is the wall
clock of all steps; *gap* the longest time between two outputs where rows come by their event time. *Reviews* are how
many, and the processor's time for one.

The plans kept are all trees of three streams; of more streams the cheapest tree of each phase, the cheapest ones over
all phases together, and the dearest; and the cheapest probing orders of each phase. *best_schedule* is reckoned from
what these really did in each step, by dynamic programming with a move at the price of a window of the new plan's work;
then it is run, its moves by the strategy that suits best, and held to what that took.
"""


def page(reports: Sequence[Report]) -> str:
    """The page; that of a quick run shows no verdicts and says so."""
    quick = any(report.quick for report in reports)
    parts = [HEAD] + (["**A quick run on small inputs: these figures mean nothing.**\n"] if quick else [])
    machines = {", ".join(f"{name} {fact}" for name, fact in report.machine.items()): None for report in reports}
    parts += [f"Measured: {machine}.\n" for machine in machines]
    mistakes = [line for report in reports for name in report.scenarios for line in wrong(report.of(name))]
    parts += ["## WRONG\n", "\n".join(f"- {line}" for line in mistakes) + "\n"] if mistakes else []
    parts += [] if quick else ["## What `adaptive` must reach\n", _verdicts(reports)]
    missing = [name for name in SCENARIOS if not any(name in report.scenarios for report in reports)]
    parts += [f"Not measured yet: {', '.join(missing)}.\n"] if missing else []
    for report in reports:
        load = report.load
        parts += [
            f"## {report.host.capitalize()}\n",
            f"A window of {load.window:g} s, steps of {load.tick:g} s, a review every {load.review:g} s, "
            f"{load.rate:,.0f} rows a second of a full-rate stream.\n",
            *(_scenario(report.of(name)) for name in report.scenarios),
        ]
    return "\n".join(parts)


def _verdicts(reports: Sequence[Report]) -> str:
    rows = [
        f"| {v.scenario} | {v.what} | **{v.found}** | {v.required} | {'met' if v.met else '**MISSED**'} |"
        for report in reports
        for v in verdicts(report)
    ]
    return "\n".join(["| scenario | | found | required | |", "|---|---|--:|--:|---|", *rows]) + "\n"


def _scenario(records: Sequence[Record]) -> str:
    scenario = SCENARIOS[records[0].scenario]
    many = f", {scenario.queries} queries of different windows" if scenario.queries > 1 else ""
    lines = [
        f"### {scenario.name}: {scenario.title}\n",
        f"`{scenario.where}`, {len(scenario.feeds)} streams{many}; "
        f"{scenario.length:g} windows; begins with `{_first(records)}`.\n",
        "| contestant | work | regret | with reviews | switches | seconds | gap | longest step | reviews | results |",
        "|---|" + "--:|" * 9,
    ]
    done = [record for record in records if not record.failed]
    least = best(done)
    lines += [_row(record, least, best_fixed(done)) for record in done]
    lines += [f"| {record.contestant} | FAILED |{' |' * 8}" for record in records if record.failed]
    return "\n".join(lines) + "\n"


def _first(records: Sequence[Record]) -> str:
    return next((record.begins for record in records if record.kind == "policy"), records[0].begins)


def _row(record: Record, least: float, fixed: Record) -> str:
    name = f"`{record.contestant}`".replace("|", r"\|") if record.kind == "fixed" else record.contestant
    name = f"{name} (best kept)" if record is fixed else name
    each = f"{len(record.reviews)}, {1e3 * record.reviewing / len(record.reviews):.1f} ms" if record.reviews else ""
    cells = [
        name, f"{record.joined:,.0f}", f"**{record.joined / least:.2f}**", f"{record.total:,.0f}",
        str(len(record.switches)), f"{record.seconds:.1f}", f"{record.gap:.2f} s", f"{1e3 * record.longest:.0f} ms",
        each, f"{record.results:,}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"
