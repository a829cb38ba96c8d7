"""The Markdown page."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.report import refusal
from benchmarks.ring.contestants import NO_SPREAD, Contestant
from benchmarks.ring.record import Burst, HopCost, Pause, Record, Report
from benchmarks.ring.relocation import NODES, ROUNDS
from benchmarks.ring.scenarios import ALONE, SCENARIOS
from benchmarks.ring.scenarios import ASKED_OF_HOPS as ASKED
from benchmarks.ring.scenarios import ROWS_OF_HOPS as ROWS
from benchmarks.ring.verdicts import verdicts, wrong
from benchmarks.table import table
from benchmarks.verdict import verdict_table

HEAD = """# Joins spread over nodes

Written by `python -m benchmarks.ring` (part of `make bench`). Joins of two to five streams that no key runs through,
each by every [spread](../docs/spreading.md), beside *no spread* (one lane, by the tree of joins that the engine takes
by itself), beside Spark's own join where it takes the query or a rewrite of it, and beside DuckDB, which has everything
at once and answers with one query. A batch is 10 seconds of the streams, the window 20 seconds. All answers are
compared by number and by a sum of hashes.

*Rows a second* are those of the last half of the batches, their ratio is to *no spread*. *Compared* are pairs in all,
*state rows* those kept by all nodes after the last batch, the intermediate results of a tree included. *Busiest* is the
node that compares most against the mean one, once windows are full; on Spark, over the whole run. *Partials* are visits
of partial results to nodes, by hop, over the whole run; a new row's first visit is the first hop.

The embedded engine has its nodes take turns in one process: it shows what they do, and cannot become faster by them.
On Spark they run on two cores (`local[2]`), so that more than two nodes gain nothing there. `one_lane` is one node with
the probing orders of the spreads. A tree keeps intermediate results instead, and compares other pairs: where streams
are three or more, a spread is faster than no spread only by what two cores gain beyond that. *A query for each join*
has both: the second query reads the answers of the first, and each is spread.

Where keys bind, a spread is judged beside *no spread*, and beside the single lane of 2026-11-22, before there were
spreads, which was several times as slow: its sources are taken from the repository's history and run in turn with the
others.
"""

QUICK = "**A quick run on small inputs: these times mean nothing.**\n"
NAMES = ("", "nodes", "rows a second", "ratio", "compared", "state rows", "busiest", "partials by hop", "results")


def page(reports: Sequence[Report], remark: str = "") -> str:
    """The page over the reports of all hosts; that of a quick run says so, and so does a `remark`."""
    parts = [HEAD, *([QUICK] if any(report.load.quick for report in reports) else [])]
    parts += [f"**{remark}**\n"] if remark else []
    parts += ["![rows a second, rows kept, and how even nodes are](../docs/ring.png)\n"]
    for report in reports:
        facts = ", ".join(f"{name} {fact}" for name, fact in report.machine.items())
        parts.append(f"Measured, {report.host}: {facts}.\n")
    failed = [line for report in reports for line in wrong(report)]
    parts += ["## WRONG\n", "\n".join(f"- {line}" for line in failed) + "\n"] if failed else []
    parts += ["## What must hold\n", _verdicts(reports)]
    parts += [_evenness(report) for report in reports if report.evenness]
    parts += [_bursts(report.bursts) for report in reports if report.bursts]
    parts += [_relocation(report.pauses) for report in reports if report.pauses]
    parts += [_hop_cost(cost) for report in reports for cost in report.hop_costs]
    for report in reports:
        parts += [f"## On the host {report.host}\n", *(_scenario(report, name) for name in report.scenarios)]
    return "\n".join([*parts, *_refusals(reports)])


def _verdicts(reports: Sequence[Report]) -> str:
    return verdict_table(verdict for report in reports for verdict in verdicts(report))


def _evenness(report: Report) -> str:
    said = """How even the nodes of rings are on three steady streams, by steps of half a second and a window of 16
seconds (`python -m benchmarks.ring.balance`). `atr` and `ctr` go by segments as long as a window, so that few nodes
work in any one step and all do over many windows: they are not held to it.
"""
    counts = list(dict.fromkeys(one.nodes for one in report.evenness))
    found = {(one.scheme, one.nodes): f"{one.balance:.2f}" for one in report.evenness}
    schemes = list(dict.fromkeys(one.scheme for one in report.evenness))
    rows = ((scheme, *(found.get((scheme, nodes), "") for nodes in counts)) for scheme in schemes)
    drawn = table(("", *(f"{nodes} nodes" for nodes in counts)), "l" + "r" * len(counts), rows)
    return f"## How even the nodes are\n\n{said}\n{drawn}"


def _bursts(found: Sequence[Burst]) -> str:
    said = """The same streams and `psp_d`, where ten times the rows come for a quarter of a window; counted is from the
beginning of the burst until its rows are gone (`python -m benchmarks.ring.balance --burst 10`). A slice takes whatever
comes in its time, or at most as many rows (`count_bound`) as a node has in steady streams, or half as many.
"""
    rows = ((f"{one.nodes}", "none" if one.bound is None else f"{one.bound}", f"{one.balance:.2f}") for one in found)
    return f"## In a burst\n\n{said}\n{table(('nodes', 'bound', 'busiest / mean'), 'rrr', rows)}"


def _relocation(found: Sequence[Pause]) -> str:
    said = f"""A node joins a ring of {NODES} on three steady streams (`python -m benchmarks.ring.relocation --cpu`):
the longest gap between one step's output and the next one's, in processor time, from the step of the change on and
over more than a window. The three runs of a round take their steps in turn; a step's gap is the median over {ROUNDS}
rounds. *By round* is how many times the longest gap of each round's plain run it is, the median, with what the machine
adds to single steps: page faults of a process that grows, in runs with and without a change.
"""
    rows = (
        (
            one.scheme, one.way, f"{1000 * one.longest:.0f} ms", f"{one.against:.2f}", f"{one.each:.2f}",
            f"{1000 * one.first:.0f} ms",
        )
        for one in found
    )  # fmt: skip
    names = ("", "a node joins", "longest gap", "against none", "by round", "the step of the change")
    drawn = table(names, "llrrrr", rows)
    return f"## Where a node joins\n\n{said}\n{drawn}"


def _hop_cost(cost: HopCost) -> str:
    said = f"""Steps of {ROWS} rows a stream and batch, of the join `{ASKED}`, in turns: with hardly a row, what they
differ by is what {cost.hops} hops from task to task cost beyond their work. A bare stage is a shuffle of two rows in
the same session, behind which a Python worker hands on what it gets: Spark's barrier, its tasks, and the way to Python
and back.
"""
    rows = (
        ("a step without a spread", cost.without),
        (f"a step over nodes, {cost.hops} hops", cost.spread),
        ("**a hop**", cost.each),
        ("a bare stage, by itself", cost.bare),
    )
    drawn = table(("", "time"), "lr", ((what, f"{1000 * seconds:.0f} ms") for what, seconds in rows))
    return f"## What a hop costs on Spark\n\n{said}\n{drawn}"


def _scenario(report: Report, name: str) -> str:
    asked = SCENARIOS[name].on(report.host, report.load.quick)
    rows = [_row(report, name, contestant) for contestant in report.contestants(name)]
    size = f"{asked.rows:,} rows a stream and batch, {asked.batches} batches"
    return f"### {name} ({report.host}): {asked.title}\n\n{size}.\n\n{table(NAMES, 'lrrrrrrlr', rows)}"


def _row(report: Report, name: str, contestant: Contestant) -> Sequence[str]:
    nodes = str(contestant.nodes) if contestant.kind in ("spread", "joins") else ""
    rounds = report.rounds(name, contestant)
    if not rounds:
        record = next(one for one in report.of(name) if one.contestant == contestant)
        return (contestant.title, nodes, "", "", "", "", "", _remark(record), "")
    record, streams = rounds[0], len(rounds[0].measurement.batches) > 1
    rate, base = report.rate(name, contestant), report.rate(name, NO_SPREAD)
    answer = f"{record.measurement.answer.rows:,}"
    if not streams:
        return (contestant.title, "", "", "", "", "", "", f"{record.measurement.seconds:.2f} s in all", answer)
    return (
        contestant.title, nodes, f"{rate:,.0f}", f"**{rate / base:.2f}**" if rate and base else "",
        f"{sum(record.comparisons):,}" if record.comparisons else "",
        f"{record.state_rows[-1]:,}" if record.state_rows else "",
        f"{record.balance:.2f}" if record.balance and contestant.name != ALONE else "",
        " · ".join(f"{visits:,}" for visits in record.sent), answer,
    )  # fmt: skip


def _remark(record: Record) -> str:
    if record.refused:
        return f"refused: {record.refused}"
    return record.stopped or "failed"


def _refusals(reports: Sequence[Report]) -> list[str]:
    found = {
        record.scenario: record.measurement.notes["refused"]
        for report in reports
        for record in report.records
        if "refused" in record.measurement.notes
    }
    return [f"## {name}\n\n#{refusal(SCENARIOS[name].scenario, said)}" for name, said in found.items()]
