"""The Markdown page over the reports of all hosts."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

from benchmarks.plan_change.measures import GAP_ALLOWED, Measures
from benchmarks.plan_change.record import Record, Report, verdicts
from benchmarks.plan_change.scenarios import SCENARIOS

HEAD = """# Changing the plan of a running join

Written by `python -m benchmarks.plan_change` (part of `make bench`). Rows are released by a schedule, at the same
moments for everybody. The data drift, and a little later the plan is changed; all contestants see the same rows. The
harness hands over what has arrived once a tick, or at once where a step took longer. Embedded, the engine works only
when it is called, so the idle time between ticks is skipped rather than slept through (`--wait` sleeps); every step
takes its real time. On Spark (`local[2]`, two lanes) nothing is skipped: files come by the wall clock and the job
takes them as it can.

`never_migrate` keeps the old plan. `restart_from_scratch` is what users of other systems do: stop, a new engine (on
Spark a new job on a new checkpoint, in the same session), replay the rows of the last window under the new plan, go
on. What the replay gives a second time is dropped by the harness and counts as no output. The replay is handed over
in one piece and read from where the rows lie anyway, so its gap is the least a restart can cost.

*The change* lasts from the first change of plan to 1.2 windows after the last, for every contestant. *Longest gap* is
the longest time without any output that touches the change; the ratio is to the run of the same plan form without a
migration. *Delay* is from the arrival of a result's last row to its output. *Lowest* is the poorest quarter window of
the change. *Extra* are comparisons that the change itself cost; *work* and *state* set all comparisons from the first
change on, and the greatest number of state rows, against the run without a migration. *Alone* is the time from the
last request to the moment at which the new plan stood by itself. *Lost* and *doubled* compare all results of the run,
as a multiset of hashes, with those of `never_migrate`.
"""


def page(reports: Sequence[Report]) -> str:
    """The page; that of quick runs shows no verdicts and says so."""
    quick = any(report.quick for report in reports)
    parts = [HEAD] + (["**A quick run on small inputs: these times mean nothing.**\n"] if quick else [])
    machines = {", ".join(f"{name} {fact}" for name, fact in report.machine.items()): None for report in reports}
    parts += [f"Measured: {machine}.\n" for machine in machines]
    parts += [_wrong(reports), "## The gap\n", _verdicts(reports, quick)]
    for report in reports:
        parts.append(f"## {report.host.capitalize()}\n")
        load = report.load
        parts.append(
            f"A window of {load.window:g} s, a tick of {load.tick:g} s, {load.rate:,.0f} rows a second of a full-rate "
            f"stream, {load.budget:,} comparisons a step for what fills states in spare time.\n"
        )
        for scenario in dict.fromkeys(record.scenario for record in report.records):
            parts.append(_table(scenario, report.of(scenario)))
        parts.append(_refusals(report))
        parts += [f"{report.remark}\n"] if report.remark else []
    return "\n".join(part for part in parts if part)


def _wrong(reports: Sequence[Report]) -> str:
    lines = [
        f"- {r.host}, {row.scenario}, {row.contestant}: {row.wrong}" for r in reports for row in r.records if row.wrong
    ]
    return "## WRONG\n\n" + "\n".join(lines) + "\n" if lines else ""


def _verdicts(reports: Sequence[Report], quick: bool) -> str:
    rows = [
        "| host | scenario | without a migration | best strategy | its gap "
        f"| ratio (below {GAP_ALLOWED:g}) | | restart |",
        "|---|---|--:|---|--:|--:|---|--:|",
    ]
    for line in (line for report in reports for line in verdicts(report)):
        never, best = line.never.measures, line.best.measures
        assert never is not None and best is not None
        restart = line.restart.measures if line.restart is not None else None
        verdict = "" if quick else "met" if line.met else "**MISSED**"
        again = f"{_time(restart.gap)} ({restart.gap_ratio:.2f})" if restart is not None else ""
        rows.append(
            f"| {line.host} | {line.scenario} | {_time(never.gap)} | {line.best.title} | {_time(best.gap)} | "
            f"**{best.gap_ratio:.2f}** | {verdict} | {again} |"
        )
    return "\n".join(rows) + "\n"


def _table(name: str, records: Sequence[Record]) -> str:
    scenario = SCENARIOS[name]
    changes = ", ".join(f"`{change.to.tree}` at {change.at:g}" for change in scenario.changes)
    lines = [
        f"### {name}: {scenario.title}\n",
        f"`{dedent(scenario.where)}`; drift at {scenario.drift:g} windows; from `{scenario.old.tree}` to {changes}.\n",
        "| contestant | longest gap | ratio | delay p99 | greatest | longest step | results/s | lowest | extra | work "
        "| peak state | state | alone | lost | doubled |",
        "|---|" + "--:|" * 14,
    ]
    lines += [_row(record.title, record.measures) for record in records if record.measures is not None]
    lines += [
        f"| {r.contestant} | {'refused' if r.refused else 'FAILED'} |{' |' * 13}" for r in records if not r.measures
    ]
    never = next((r.measures for r in records if r.measures is not None), None)
    load = f"\nLoad without a migration, in the window after the change: {never.load:.0%}.\n" if never else "\n"
    return "\n".join(lines) + "\n" + load


def _row(name: str, m: Measures) -> str:
    alone = _time(m.alone) if m.alone is not None else ""
    cells = [
        name, _time(m.gap), f"{m.gap_ratio:.2f}", _time(m.delay_p99), _time(m.delay_max), _time(m.pause),
        f"{m.rate:,.0f}", f"{m.lowest_rate:,.0f}", f"{m.extra:,}", f"{m.comparisons_ratio:.2f}",
        f"{m.peak_rows:,}", f"{m.state_ratio:.2f}", alone, f"{m.lost:,}", f"{m.doubled:,}",
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def _refusals(report: Report) -> str:
    said = {record.contestant: record.refused for record in report.records if record.refused}
    return "\n".join(f"- refused: {message}" for message in said.values()) + "\n" if said else ""


def _time(seconds: float) -> str:
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
