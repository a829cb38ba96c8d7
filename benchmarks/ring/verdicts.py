"""What must hold: answers are equal, nothing is kept or compared twice, nodes are even, and on Spark it is faster."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from benchmarks.ring.contestants import OTHERS, TOGETHER, Contestant
from benchmarks.ring.record import Record, Report
from benchmarks.ring.relocation import CHANGES, SCHEMES
from benchmarks.ring.scenarios import ALONE, SCENARIOS
from benchmarks.verdict import Verdict

WITHOUT_COPIES = ("hash_hops", "psp", "psp_d")
EVEN, EVEN_IN_A_BURST, MANY_KEYS = 1.1, 1.3, "two_keys"
"""The busiest node against the mean; `hash_hops` is as even as the hash of the keys, of which there must be many."""

HOP = 0.1
"""Seconds of a hop beyond its work."""

PAUSE = 1.2
"""The longest gap between outputs where a node joins a ring, a step's the median over rounds, against a run in which
none does.
"""

STAGES = {"no spread": 1, "one_lane": 2}
"""Stages of a step that needs no hop: lanes read the files and work; with nodes, rows are sent home in between."""


def wrong(report: Report) -> Iterator[str]:
    """What must not be, whatever the times: a failure, an answer that is empty, or is not the others'."""
    for name in report.scenarios:
        done = [record for record in report.of(name) if record.done]
        for record in report.of(name):
            who = f"{report.host}, {name}, {record.contestant.title} on {record.contestant.nodes}"
            if record.failed:
                yield f"{who}: {record.failed}"
            elif record.done and record.measurement.answer != done[0].measurement.answer:
                rows = f"{record.measurement.answer.rows:,} results, {done[0].contestant.title} has"
                yield f"{who}: another answer ({rows} {done[0].measurement.answer.rows:,})"
        if not any(record.measurement.answer.rows for record in done):
            yield f"{report.host}, {name}: nobody has a result"


def verdicts(report: Report) -> list[Verdict]:
    """Every requirement that the report has figures for."""
    timed = (_even, _pauses, _faster, _hops)
    return [*_copies(report), *(one for of in timed if not report.load.quick for one in of(report))]


def has_no_copies(record: Record, alone: Record) -> bool:
    """Whether after every step as many rows are kept, and in every step as many pairs compared, as at one node."""
    return record.state_rows == alone.state_rows and record.comparisons == alone.comparisons


def _copies(report: Report) -> Iterator[Verdict]:
    for name in report.scenarios:
        alone = next(iter(report.rounds(name, Contestant(ALONE))), None)
        for scheme in WITHOUT_COPIES if alone is not None else ():
            own = [one for one in report.of(name) if one.is_spread_by(scheme)]
            if own and alone is not None:
                equal = [one.contestant.nodes for one in own if has_no_copies(one, alone)]
                what = f"{report.host}, {name}, {scheme}: rows kept and pairs compared in every step"
                found = f"those of one node in {len(equal)} of {len(own)} runs"
                yield Verdict(what, found, "those of one node", len(equal) == len(own))


def _even(report: Report) -> Iterator[Verdict]:
    for even in report.evenness:
        yield _at_most_even(f"steady streams in short steps, {even.scheme}, {even.nodes} nodes", even.balance)
    if report.host == "embedded":
        for one in report.of(MANY_KEYS):
            if one.is_spread_by("hash_hops") and one.contestant.nodes > 1 and one.balance:
                yield _at_most_even(f"{MANY_KEYS}, hash_hops, {one.contestant.nodes} nodes", one.balance)
    for burst in report.bursts:
        if burst.bound is not None:
            what = f"a burst, psp_d, {burst.nodes} nodes, at most {burst.bound} rows in a slice"
            yield _at_most_even(what, burst.balance, EVEN_IN_A_BURST)


def _pauses(report: Report) -> Iterator[Verdict]:
    known = {(pause.scheme, pause.way): pause for pause in report.pauses}
    for scheme, way in product(SCHEMES, CHANGES) if report.host == "embedded" else ():
        what = f"a node joins a ring of {scheme}, {way}: longest gap, of the steps' medians, / that without it"
        pause = known.get((scheme, way))
        found = "not measured" if pause is None else f"{pause.against:.2f}; by round {pause.each:.2f}"
        yield Verdict(what, found, f"at most {PAUSE:g}", pause is not None and pause.against <= PAUSE)


def _at_most_even(what: str, balance: float, most: float = EVEN) -> Verdict:
    return Verdict(f"{what}: busiest / mean", f"{balance:.3f}", f"at most {most:g}", balance <= most)


def _faster(report: Report) -> Iterator[Verdict]:
    if report.host != "spark":
        return
    for name, asked in SCENARIOS.items():
        known = report.contestants(name)
        # The first spread of two nodes that runs on Spark is the one that is judged.
        judged = [one for one in known if one.kind == "spread" and one.nodes == TOGETHER][:1]
        for own in [*judged, *(one for one in known if one.kind == "joins")]:
            ours = report.rate(name, own)
            for rival, least in asked.required.items():
                theirs = report.rate(name, OTHERS[rival])
                if OTHERS[rival] not in known:
                    continue
                what = f"spark, {name}: {own.title} on {own.nodes} nodes / {OTHERS[rival].title}, steady rows a second"
                if ours is None or theirs is None:
                    yield Verdict(what, "not measured", f"at least {least:g}", False)
                else:
                    yield Verdict(what, f"{ours / theirs:.2f}", f"at least {least:g}", ours / theirs >= least)


def _hops(report: Report) -> Iterator[Verdict]:
    for cost in report.hop_costs:
        found = f"{1000 * cost.each:.0f} ms; a bare stage with Python {1000 * cost.bare:.0f} ms"
        yield Verdict("spark: a hop beyond its work", found, f"at most {1000 * HOP:.0f} ms", cost.each <= HOP)
    for who, most in STAGES.items() if report.host == "spark" else ():
        counts = {count for one in report.records if one.contestant.name == who and one.done for count in one.stages}
        if counts:
            shown = ", ".join(map(str, sorted(counts)))
            yield Verdict(f"spark, {who}: stages of a step, which needs no hop", shown, f"{most}", counts == {most})
