"""An auction day: many new people in the morning, auctions and bids in the evening, most of these on hot auctions.

The joins are those of NEXMark's queries 3, 9, 20 and 23, each of three or four streams, so that there is a plan to
choose. They run on the embedded engine by every plan kept fixed that matters, by the best schedule of plans, and with
`optimize(mode="auto")`, as in `benchmarks.optimizer`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rich.console import Console

from benchmarks.nexmark.day_rows import Day
from benchmarks.optimizer import embedded
from benchmarks.optimizer.command import contested
from benchmarks.optimizer.course import LEAD, Course
from benchmarks.optimizer.fixed_plans import fixed_plans
from benchmarks.optimizer.load import LOADS, Load
from benchmarks.optimizer.record import Report
from benchmarks.optimizer.scenario import Scenario
from benchmarks.plan_change.rows import Rows
from benchmarks.plan_change.scenario import Feed, Profile, always

POLICY = "adaptive"
LENGTH = 30.0
MORNING, EVENING = 10.0, 20.0

DAY = Day(
    rates={
        "person": Profile(((MORNING, 0.45), (EVENING, 0.002))),
        "auction": Profile(((MORNING, 0.0005), (EVENING, 0.10))),
        "bid": Profile(((MORNING, 0.45), (EVENING, 0.90))),
    },
    hot_auctions=Profile(((MORNING, 2.0), (EVENING, 8.0))),
    hot_sellers=Profile(((MORNING, 4.0), (EVENING, 4.0))),
    hot_bidders=Profile(((MORNING, 4.0), (EVENING, 4.0))),
    length=LENGTH,
)
"""In the morning people come, and bid on what was opened before; in the evening auctions open, and bids go to hot
ones."""

FULL, QUICK = LOADS["embedded"], Load(window=4.0, tick=4.0, review=4.0, rate=200)


@dataclass(frozen=True)
class DayScenario(Scenario):
    """A join over the day; `feeds` are its aliases, `text` has `{window}` for the window of each."""

    text: str = ""

    def sqls(self, window: float) -> dict[str, str]:
        """The query."""
        return {LEAD: self.text.format(window=f"[RANGE {round(window * 1e6)} MICROSECONDS]")}


@dataclass(frozen=True)
class DayCourse(Course):
    """A join over the day's rows."""

    @cached_property
    def rows(self) -> Rows:
        """Every row."""
        return DAY.rows(self.load)


def _joined(name: str, title: str, aliases: str, text: str) -> DayScenario:
    nothing = Feed(always(1.0), {})
    return DayScenario(
        name, title, "drifting", dict.fromkeys(aliases, nothing), {}, "", (MORNING / 2, LENGTH - 1), LENGTH, text=text
    )


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        _joined(
            "q3", "bids on what people of three states sell in category 10", "bap",
            "SELECT b.auction, b.bidder, b.price, p.id, _ts FROM bid AS b {window}, auction AS a {window}, "
            "person AS p {window} WHERE b.auction = a.id AND a.seller = p.id AND a.category = 10 "
            "AND p.state IN ('OR', 'ID', 'CA')",
        ),
        _joined(
            "q9", "bids on auctions that were open, with the bidder", "bap",
            "SELECT b.auction, b.price, p.id, _ts FROM bid AS b {window}, auction AS a {window}, person AS p {window} "
            "WHERE b.auction = a.id AND b.bidder = p.id AND b.ts BETWEEN a.ts AND a.expires",
        ),
        _joined(
            "q20", "bids of category 10 with seller and bidder", "basp",
            "SELECT b.auction, b.price, s.id AS seller, p.id AS bidder, _ts FROM bid AS b {window}, "
            "auction AS a {window}, person AS s {window}, person AS p {window} "
            "WHERE b.auction = a.id AND a.seller = s.id AND b.bidder = p.id AND a.category = 10",
        ),
        _joined(
            "q23", "bids with their auction and its seller", "bap",
            "SELECT b.auction, b.bidder, b.price, p.id, _ts FROM bid AS b {window}, auction AS a {window}, "
            "person AS p {window} WHERE b.auction = a.id AND a.seller = p.id",
        ),
    )
}  # fmt: skip
"""Each in the manner of the query of NEXMark whose name it has."""


def contest(console: Console, *, quick: bool) -> Report:
    """Everybody over the whole day, with every query."""
    load = QUICK if quick else FULL
    report = Report("embedded", load, quick=quick)
    for name, scenario in SCENARIOS.items():
        console.rule(f"an auction day, {name}: {scenario.title}")
        course = DayCourse(scenario, load)
        fixed = fixed_plans(course)
        rows = contested(course, fixed.plans, fixed.best, (POLICY,), embedded.run, console)
        report = report.with_rows(name, list(rows), SCENARIOS)
    return report
