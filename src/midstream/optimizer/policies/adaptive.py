"""Adaptive: a query moves when that pays, surely and soon enough, and moves back where it did not. Ours; the default.

OM (002 §4.2) switches whenever the figures enter another region, as if that were free. Here the gain over the time for
which it is expected to last, less what the figures may be wrong by, must exceed the predicted cost of the migration.
What a switch really brought is kept in a balance; one that did not pay raises the bar for that pair of plans. The next
switch waits until the running plan has lost so many times what a review and the move take, or until so many reviews
agree. That is ski rental: on a stream that flaps, moves and reviews take no more than what was lost by staying.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, isclose

from typing_extensions import override

from midstream.model.codec import decode, encode
from midstream.model.window import SECOND
from midstream.model.words import rough_span_text
from midstream.optimizer.policies.policy_contract import Decision, Policy, Review, SwitchCost, WeighedPlan

FADING = 0.8  # the weight of what is remembered in the mean of what a plan would have cost
REMEMBERED = 8  # so many plans are remembered
REVIEWS = 1  # so many reviews in a row must find the running plan beaten, times the bar between the two plans
MARGIN = 0.05  # a plan that saves a smaller share than this is as good as the running one
PATIENCE = 4.0  # while no change of the stream has been seen yet, a gain is expected to last for so many windows
RAISED = 2.0  # the factor by which a switch that did not pay raises the bar, and by which one that paid lowers it again
ENOUGH = 4.0  # a loss of what so many reviews take is enough for a switch, however high the bar is
HIGHEST = 64.0  # no bar is higher
RECENT = 0.5  # the weight of the newest lifetime in the mean of how long a plan stays the best
PROBATION = 2.0  # so many windows after a switch it is judged
SLACK = 0.1  # the share of a window by which it may be judged sooner


@dataclass(frozen=True)
class Bar:
    """How much more than its cost a switch between two plans must gain, either way."""

    one: str
    other: str
    height: float

    def joins(self, plans: set[str]) -> bool:
        """Return whether the bar is between these two plans."""
        return {self.one, self.other} == plans


@dataclass(frozen=True)
class SwitchMade:
    """A switch that was made: `balance` is what it has saved in `seconds` so far, less its own cost.

    `foreseen` is what it was surely to save in a second; `back` says that it took one back that had not paid.
    """

    old: str
    new: str
    time: int
    foreseen: float
    balance: float
    seconds: float = 0.0
    back: bool = False


@dataclass(frozen=True)
class UsualCost:
    """What a plan would have cost at the reviews so far, in the mean; the newest count most."""

    plan: str
    cost: float


@dataclass(frozen=True)
class Ledger:
    """What the policy remembers: the plan that ran, since when, for how many reviews it was beaten, what switches cost.

    `lifetime` is for how many seconds a plan stays the best in the mean, 0 while that is unknown; `since` is since when
    the present best one is. `decided` is the plan that was decided for last, `price` what the switch there was to cost
    and `gain` what it was surely to save in a second. `usual` has the plans that were weighed, the cheapest first.
    """

    plan: str = ""
    best: str = ""
    since: int = 0
    beaten: int = 0
    lifetime: float = 0.0
    decided: str = ""
    price: float = 0.0
    gain: float = 0.0
    switch: SwitchMade | None = None
    bars: tuple[Bar, ...] = ()
    usual: tuple[UsualCost, ...] = ()

    def bar(self, one: str, other: str) -> float:
        """Return the height of the bar between two plans."""
        return next((bar.height for bar in self.bars if bar.joins({one, other})), 1.0)

    def with_bar(self, one: str, other: str, height: float) -> Ledger:
        """Set the bar between two plans."""
        others = tuple(bar for bar in self.bars if not bar.joins({one, other}))
        return replace(self, bars=others if height <= 1.0 else (*others, Bar(one, other, min(height, HIGHEST))))


class Adaptive(Policy):
    """Switches when the gain surely exceeds the cost of the migration; takes back what did not pay."""

    name = "adaptive"
    options = {"reviews": REVIEWS, "margin": MARGIN, "patience": PATIENCE}  # noqa: RUF012

    @override
    def decide(self, review: Review) -> Decision:
        decision = self._decide(review)
        bar = max([1.0, *(one.height for one in self._judged(decode(Ledger, dict(decision.memory))).bars)])
        return replace(decision, hurdle=min(bar, ENOUGH) * decision.hurdle)

    def _decide(self, review: Review) -> Decision:
        ledger = self._settled(review, self._brought_up(review, decode(Ledger, review.memory)))
        ledger = self._remembered(review, ledger)
        if not review.alternatives:
            return Decision(None, "there is no other plan", encode(ledger))
        cheapest = review.alternatives[0]
        ledger = self._timed(review, ledger, cheapest)
        better = self._better(review, ledger)
        first = next(better, None)
        if first is None:
            return Decision(None, _good_enough(review.running, cheapest), encode(replace(ledger, beaten=0)))
        ledger = replace(ledger, beaten=ledger.beaten + 1)
        carried = ((*one, price) for one in chain([first], better) if (price := review.predict(one[0].plan)))
        best, gain, price = next(carried, (*first, None))
        if price is None:
            return Decision(None, f"no allowed strategy can migrate it to {best.plan}", encode(ledger))
        both = 1 + price.work / review.price  # what the review and the move take
        if reason := self._too_early(review, ledger, best, both):
            return Decision(None, reason, encode(ledger), hurdle=both, regret=gain)
        if reason := self._too_dear(review, ledger, best, gain, price):
            return Decision(None, reason, encode(ledger))
        decided = replace(ledger, decided=best.plan, price=price.work, gain=gain)
        return Decision(best.plan, self._why(review, ledger, best, gain, price), encode(decided), hurdle=both)

    def _better(self, review: Review, ledger: Ledger) -> Iterator[tuple[WeighedPlan, float]]:
        # Of those that are as good as the cheapest one, that comes first which has cost least at the reviews so far: it
        # may be as good in the next season, too.
        margin = self.option(review, "margin")
        least = margin * review.running.cost
        found = [one for one in review.alternatives if review.running.cost - one.cost > least]
        most = found[0].cost * (1 + margin) if found else 0.0
        usual = {one.plan: one.cost for one in ledger.usual}
        found.sort(key=lambda one: (one.cost > most, usual.get(one.plan, one.cost) if one.cost <= most else one.cost))
        for one in found:
            if (gain := review.sure_gain(one.plan)) > least:
                yield one, gain

    def _remembered(self, review: Review, ledger: Ledger) -> Ledger:
        # Each plan's cost now enters the mean of what it has cost so far.
        before = {one.plan: one.cost for one in ledger.usual}
        shown = {one.plan: one.cost for one in (review.running, *review.alternatives)}
        others = ((plan, review.cost_of(plan)) for plan in before.keys() - shown.keys())
        shown |= {plan: cost for plan, cost in sorted(others) if cost is not None}
        means = [UsualCost(p, FADING * before.get(p, cost) + (1 - FADING) * cost) for p, cost in shown.items()]
        return replace(ledger, usual=tuple(sorted(means, key=lambda one: (one.cost, one.plan))[:REMEMBERED]))

    def _brought_up(self, review: Review, ledger: Ledger) -> Ledger:
        # Since the last review a switch may have been made, or the last one may have saved something.
        plan = review.running.plan
        if ledger.plan and ledger.plan != plan:
            last = ledger.switch
            back = last is not None and last.old == plan and last.balance < 0
            old = review.cost_of(ledger.plan)
            saved = 0.0 if old is None else (old - review.running.cost) * review.elapsed
            begun = review.time - round(review.elapsed * SECOND)
            made = SwitchMade(ledger.plan, plan, begun, ledger.gain, saved - ledger.price, review.elapsed, back)
            # Of a move that was made by hand neither the price nor what it was for is known.
            own = made if plan == ledger.decided else None
            return replace(self._judged(ledger), plan=plan, switch=own, beaten=0, decided="", price=0.0, gain=0.0)
        if ledger.switch is not None and (old := review.cost_of(ledger.switch.old)) is not None:
            real = review.running.cost if review.real is None else review.real
            saved = ledger.switch.balance + (old - real) * review.elapsed
            seconds = ledger.switch.seconds + review.elapsed
            return replace(ledger, switch=replace(ledger.switch, balance=saved, seconds=seconds))
        return replace(ledger, plan=plan)

    def _settled(self, review: Review, ledger: Ledger) -> Ledger:
        # One that has not paid yet gets more time where reviews are rare. The last rows of two steps are never quite as
        # far apart as the steps are.
        if (switch := ledger.switch) is None or not switch.seconds:
            return ledger
        rest = review.window if switch.balance >= 0 else max(review.window, review.elapsed)
        waited = (review.time - switch.time) / SECOND
        return self._judged(ledger) if waited >= PROBATION * rest - SLACK * review.window else ledger

    @staticmethod
    def _judged(ledger: Ledger) -> Ledger:
        # The balance decides whether the bar between the two plans is raised or lowered.
        if (switch := ledger.switch) is None:
            return ledger
        if switch.back and switch.balance >= 0:
            # That it was right to go back speaks against the switch, not for the next one.
            return replace(ledger, switch=None)
        factor = RAISED if switch.balance < 0 else 1 / RAISED
        height = ledger.bar(switch.old, switch.new) * factor
        return replace(ledger.with_bar(switch.old, switch.new, height), switch=None)

    def _timed(self, review: Review, ledger: Ledger, best: WeighedPlan) -> Ledger:
        # A lifetime ends if another plan is the best one now, by more than the margin.
        first = min((review.running, best), key=lambda one: one.cost)
        if ledger.best == first.plan:
            return ledger
        known, margin = review.cost_of(ledger.best), self.option(review, "margin")
        if known is not None and known <= first.cost * (1 + margin):
            return ledger
        if not ledger.best:
            return replace(ledger, best=first.plan, since=review.time)
        lived = (review.time - ledger.since) / SECOND
        mean = lived if not ledger.lifetime else RECENT * lived + (1 - RECENT) * ledger.lifetime
        return replace(ledger, best=first.plan, since=review.time, lifetime=mean)

    def _horizon(self, review: Review, ledger: Ledger) -> float:
        # A gain is expected to last as long as plans stayed the best, or as long as this one already has.
        if review.horizon is not None:
            return review.horizon
        lived = (review.time - ledger.since) / SECOND
        known = ledger.lifetime or self.option(review, "patience") * max(review.window, review.elapsed)
        return max(known, lived)

    def _too_early(self, review: Review, ledger: Ledger, best: WeighedPlan, both: float) -> str:
        # "" where so many reviews suffice.
        bar = ledger.bar(review.running.plan, best.plan)
        needed = ceil(self.option(review, "reviews") * (1.0 if review.lost >= min(bar, ENOUGH) * both else bar))
        if ledger.beaten >= needed:
            return ""
        return f"{best.plan} saves {_share(review.running, best):.0%}, at {ledger.beaten} reviews of {needed} in a row"

    def _too_dear(self, review: Review, ledger: Ledger, best: WeighedPlan, gain: float, price: SwitchCost) -> str:
        # "" where the switch pays.
        bar, horizon = ledger.bar(review.running.plan, best.plan), self._horizon(review, ledger)
        if gain * horizon > bar * price.work:
            return ""
        needs = f"{bar:g} times " if bar > 1 else ""
        return (
            f"{best.plan} saves {_share(review.running, best):.0%} of the join's work, which gains {needs}the "
            f"{_amount(review, price.work)} of {price.strategy} back in {rough_span_text(bar * price.work / gain)}: "
            f"longer than it is expected to last, {rough_span_text(horizon)}"
        )

    def _why(self, review: Review, ledger: Ledger, best: WeighedPlan, gain: float, price: SwitchCost) -> str:
        switch, before = ledger.switch, ""
        if switch is not None and switch.old == best.plan and switch.balance < 0:
            foreseen = _amount(review, switch.foreseen * switch.seconds)
            before = (
                f"the last switch did not pay, its balance is {_amount(review, switch.balance)} in "
                f"{rough_span_text(switch.seconds)} that were to save {foreseen}: "
            )
        return before + (
            f"saves {_share(review.running, best):.0%} of the join's work for {_amount(review, price.work)} by "
            f"{price.strategy}, gained back in {rough_span_text(price.work / gain)}"
        )


def _share(running: WeighedPlan, best: WeighedPlan) -> float:
    return 1 - best.cost / running.cost if running.cost else 0.0


def _amount(review: Review, cost: float) -> str:
    # Time where plans are weighed by nothing but work.
    # Costs are compared, and kept, without their last bits.
    is_work = isclose(review.running.cost, review.running.work, rel_tol=1e-9)
    return f"{cost / 1e6:.3g} ms of work" if is_work else f"{cost:.3g} of weighed cost"


def _good_enough(running: WeighedPlan, best: WeighedPlan) -> str:
    if best.cost >= running.cost:
        return "it runs by the cheapest plan"
    return f"{best.plan} saves {_share(running, best):.1%}, which is within the margin or the error of the figures"
