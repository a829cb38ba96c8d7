"""How many lanes a job should have, by what its steps take and how evenly its lanes are loaded. Pure.

Lanes run side by side as far as there are workers, and a step waits for its busiest one. More lanes divide the work
further, except for the rows of one key, which meet in one lane whatever their number, and for queries whose streams
no key ties. Fewer lanes save what each costs in every step: a task, a chunk of each state, a file of each result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from midstream.model.lane_choice import LaneTrend
from midstream.model.words import counted
from midstream.runtime.lane_key import SLOTS

LATE = 0.8  # steps that take more than this share of the trigger's interval are about to fall behind
IDLE = 0.4  # lanes are given up as long as steps are foreseen to take no more than this share of the interval

UNEVEN = 1.5  # where nothing says when a step is late: the busiest lane does so many times the mean
LEAST_GAIN = 0.15  # more lanes must shorten a step by at least this share
IN_A_ROW = 3  # so many reviews in a row must agree, and so many pass until a change is judged
REST = 20  # a change that is reversed after fewer reviews than this, times the bar, was made too soon
HIGHEST_BAR = 32  # never must more than so many times `IN_A_ROW` reviews agree
PAID_BACK = 1000  # where no step is late, a change must be paid back within so many steps


@dataclass(frozen=True)
class GroupLoad:
    """The shares of a job's work that the lanes of one group do, all together and the busiest of them.

    A group that does not `split` has one lane, whatever the job has.
    """

    total: float
    busiest: float
    splits: bool = True

    def one_key(self, lanes: int) -> float:
        """Estimate the share of one key, which makes the busiest of `lanes` lanes busier than the mean.

        >>> round(GroupLoad(total=1.0, busiest=0.7).one_key(2), 6)
        0.4
        """
        return max((self.busiest * lanes - self.total) / (lanes - 1), 0.0) if lanes > 1 else 0.0

    def busiest_of(self, lanes: int, now: int) -> float:
        """Predict the share of the busiest of `lanes` lanes, where there are `now` lanes; one key stays together.

        >>> round(GroupLoad(total=1.0, busiest=0.7).busiest_of(4, now=2), 6)
        0.55
        """
        if not self.splits:
            return self.total
        together = self.one_key(now)
        return together + (self.total - together) / lanes


@dataclass(frozen=True)
class LaneFigures:
    """Measured figures of a job's lanes; `work` of a step and `state` to move to other lanes are in nanoseconds.

    `took` and `interval` are seconds: the decayed mean of the last steps, and the trigger's, where it has one.
    """

    lanes: int
    workers: int
    groups: tuple[GroupLoad, ...]
    work: float
    state: float
    took: float | None = None
    interval: float | None = None

    @property
    def busy(self) -> float | None:
        """The share of the trigger's interval that a step takes."""
        return self.took / self.interval if self.took is not None and self.interval else None

    @property
    def uneven(self) -> float:
        """The busiest lane's work divided by the mean of its group."""
        found = (group.busiest * self.lanes / group.total for group in self.groups if group.splits and group.total)
        return max(found, default=1.0)

    def waited_for(self, lanes: int) -> float:
        """Predict the share of a step's work that is waited for with `lanes` lanes.

        >>> LaneFigures(1, 2, (GroupLoad(1.0, 1.0),), 0.0, 0.0).waited_for(4)
        0.5
        """
        return max([1 / self.workers, *(group.busiest_of(lanes, self.lanes) for group in self.groups)])

    def shortened(self, lanes: int) -> float:
        """Predict how long a step takes with `lanes` lanes, as a share of what it takes now."""
        return self.waited_for(lanes) / self.waited_for(self.lanes)

    @property
    def pace(self) -> float:
        """The seconds of a unit of work where steps are timed, else its share that is waited for."""
        return self.took / self.work if self.took is not None and self.work else self.waited_for(self.lanes)


@dataclass(frozen=True)
class LaneDecision:
    """How many lanes there shall be, and why; None where they stay."""

    lanes: int | None
    reason: str


def decided(figures: LaneFigures, trend: LaneTrend) -> tuple[LaneDecision, LaneTrend]:
    """Decide on the number of lanes at a review; returns also the trend to remember.

    >>> late = LaneFigures(1, 4, (GroupLoad(1.0, 1.0),), work=1e9, state=1e9, took=1.2, interval=1.0)
    >>> trend, found = LaneTrend(), []
    >>> for review in range(IN_A_ROW):
    ...     decision, trend = decided(late, trend)
    ...     found.append(decision.lanes)
    >>> found
    [None, None, 2]
    """
    trend = replace(trend, since=trend.since + 1)
    if _did_not_pay(figures, trend):
        reason = f"{counted(figures.lanes, 'lane')} are hardly faster than {trend.former} were"
        return LaneDecision(trend.former, reason), replace(trend, wanted=trend.former, agreed=0)
    lanes, reason = wanted(figures)
    if lanes == figures.lanes:
        return LaneDecision(None, reason), replace(trend, wanted=0, agreed=0)
    goes_on = trend.wanted and (trend.wanted > figures.lanes) == (lanes > figures.lanes)
    trend = replace(trend, wanted=lanes, agreed=trend.agreed + 1 if goes_on else 1)
    needed = IN_A_ROW * trend.bar
    if trend.agreed < needed:
        return LaneDecision(None, f"{reason}; that is so for {trend.agreed} of {needed} reviews"), trend
    return LaneDecision(lanes, reason), trend


def changed(figures: LaneFigures, trend: LaneTrend, lanes: int) -> LaneTrend:
    """Update the trend once the lanes have been set; a change that was soon reversed raises the bar."""
    bar = trend.bar
    if trend.set == figures.lanes:
        back = (trend.former > trend.set) == (lanes > trend.set)
        bar = bar * 2 if back and trend.since < REST * bar else bar // 2
    taken_back = _did_not_pay(figures, trend) and lanes == trend.former
    return LaneTrend(
        bar=min(max(bar, 1), HIGHEST_BAR),
        former=0 if taken_back else figures.lanes,
        set=0 if taken_back else lanes,
        pace=figures.pace,
    )


def _did_not_pay(figures: LaneFigures, trend: LaneTrend) -> bool:
    # Added lanes pay if steps have become shorter by half of what they should.
    added = trend.set == figures.lanes > trend.former > 0
    return added and trend.since == IN_A_ROW and figures.pace > trend.pace * (1 - LEAST_GAIN / 2)


def wanted(figures: LaneFigures) -> tuple[int, str]:
    """Choose the number of lanes that would suit, with the reason; the present one where lanes cannot help."""
    if not any(group.splits and group.total for group in figures.groups):
        return figures.lanes, "no key joins all streams of a query, so one lane has all its rows"
    if figures.busy is None:
        load = f"the busiest lane does {figures.uneven:.2f} times the mean"
        if figures.uneven < UNEVEN:
            return figures.lanes, f"{load}, and no trigger's interval says that a step is late"
    else:
        load = f"a step takes {_share(figures.busy)} the trigger's interval"
        if figures.busy <= LATE:
            return _fewer(figures, load)
    return _more(figures, load)


def _share(busy: float) -> str:
    """Format a share of an interval for a reader.

    >>> _share(0.5), _share(21.89)
    ('50 % of', '21.9 times')
    """
    return f"{busy:.1f} times" if busy > 1 else f"{100 * busy:.0f} % of"


def _more(figures: LaneFigures, load: str) -> tuple[int, str]:
    best = lanes = figures.lanes
    while lanes * 2 <= SLOTS:
        lanes *= 2
        if figures.waited_for(lanes) > (1 - LEAST_GAIN) * figures.waited_for(best):
            break
        best = lanes
        if figures.busy is None or figures.busy * figures.shortened(best) <= LATE:
            break
    if best == figures.lanes:
        return best, f"{load}; {_what_limits(figures)}"
    saved = (1 - figures.shortened(best)) * figures.work
    if figures.busy is None and figures.state > PAID_BACK * saved:
        return figures.lanes, f"{load}; moving the state to {counted(best, 'lane')} would cost more than it saves"
    return best, f"{load}; {counted(best, 'lane')} would take {figures.shortened(best):.0%} of the time"


def _fewer(figures: LaneFigures, load: str) -> tuple[int, str]:
    assert figures.busy is not None
    best = figures.lanes
    while best > 1 and figures.busy * figures.shortened((best + 1) // 2) <= IDLE:
        best = (best + 1) // 2
    if best == figures.lanes:
        return best, f"{load}, in {counted(best, 'lane')}: that is neither late nor idle"
    then = figures.busy * figures.shortened(best)
    return best, f"{load}; {counted(best, 'lane')} would take {then:.0%} of it, with fewer tasks and files"


def _what_limits(figures: LaneFigures) -> str:
    longest = max(figures.groups, key=lambda group: group.busiest_of(SLOTS, figures.lanes))
    if longest.busiest_of(SLOTS, figures.lanes) <= 1 / figures.workers:
        return f"all {figures.workers} workers are busy: more lanes would only wait for each other"
    if not longest.splits:
        return f"{longest.total:.0%} of the work is of queries without a key that ties all their streams"
    return f"{longest.one_key(figures.lanes):.0%} of the work is of one key, and stays in one lane"
