"""What the page says of the auction day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.nexmark.day import SCENARIOS
from benchmarks.optimizer.record import Record, Report
from benchmarks.optimizer.verdicts import best_fixed, wrong
from benchmarks.table import table

HEAD = """## An auction day

NEXMark's rows, but the day drifts: in the morning many new people come, and bid on what was opened before; in the
evening many auctions open, hardly anybody is new, and seven of eight bids go to a hot auction. Joins of three and four
streams, embedded, over windows of {window:g} s, a review every {review:g} s, {rate:,.0f} events a second in steps of
{tick:g} s, {length:g} windows. The plans kept, the best schedule of plans (which only somebody who knows the future can
follow) and `optimize(mode="auto")` (`adaptive`) are given the same rows; those that may change begin with the plan that
is best in the morning. *Work* is what the engine counted, in milliseconds by the optimizer's units, migrations
included; *CPU* are seconds of processor time of all steps, reviews included; both as in [OPTIMIZER](OPTIMIZER.md).
"""


def day_part(report: Report) -> str:
    """A table for each join."""
    load, length = report.load, next(iter(SCENARIOS.values())).length
    mistakes = [line for name in report.scenarios for line in wrong(report.of(name))]
    parts = [HEAD.format(window=load.window, review=load.review, rate=load.rate, tick=load.tick, length=length)]
    parts += ["**WRONG**\n", "\n".join(f"- {line}" for line in mistakes) + "\n"] if mistakes else []
    parts += [_of(report.of(name)) for name in report.scenarios]
    return "\n".join(parts)


def _of(records: Sequence[Record]) -> str:
    scenario = SCENARIOS[records[0].scenario]
    names = ("contestant", "comparisons", "work", "of the best kept", "CPU", "of the best kept", "switches", "results")
    return f"### {scenario.name}: {scenario.title}\n\n" + table(names, "lrrrrrrr", _rows(records))


def _rows(records: Sequence[Record]) -> Iterator[Sequence[str]]:
    done = [record for record in records if not record.failed]
    fixed = best_fixed(done)
    for record in done:
        name = f"`{record.contestant}`".replace("|", r"\|") if record.kind == "fixed" else record.contestant
        yield (
            f"{name} (best kept)" if record is fixed else name, f"{record.comparisons:,}", f"{record.joined:,.0f}",
            f"**{record.joined / fixed.joined:.2f}**", f"{record.busy:.2f} s", f"{record.busy / fixed.busy:.2f}",
            str(len(record.switches)), f"{record.results:,}",
        )  # fmt: skip
    yield from ([record.contestant, "FAILED", *[""] * 6] for record in records if record.failed)
