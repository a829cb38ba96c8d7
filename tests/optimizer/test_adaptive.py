"""When `adaptive` moves a query and when it does not, by reviews that are made up: what it costs in all is reckoned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from midstream.model.codec import decode
from midstream.model.errors import QueryError
from midstream.optimizer.policies.adaptive import Adaptive, Ledger
from midstream.optimizer.policies.policy_contract import Decision, Review, SwitchCost, WeighedPlan
from midstream.optimizer.statistics import Statistics
from midstream.proposals.settings import settings_of_values

SECOND = 1_000_000
PRICE = 40.0
"""The work of a migration, where a plan costs about 100 a review."""

Costs = Callable[[int], Sequence[float]]


@dataclass
class Course:
    """The plans A, B, ... under a policy, review by review; `cost` is what ran and what moving took."""

    costs: Costs
    doubt: float = 0.05
    price: float = PRICE
    running: str = "A"
    cost: float = 0.0
    switches: int = 0
    decision: Decision | None = None
    window: float = 5.0
    refused: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()
    step_length: float = 1.0
    elapsed: float = 1.0
    lost: float = 0.0
    shown: int | None = None
    """So many other plans are shown, the cheapest; what else is asked for is weighed."""

    def run(self, reviews: int, **options: float) -> Course:
        memory: object = {}
        for number in range(reviews):
            memory = self.step(number, memory, **options)
        return self

    def step(self, number: int, memory: object, **options: float) -> object:
        """One review; what the policy remembers of it."""
        plans = {chr(65 + i): cost for i, cost in enumerate(self.costs(number))}
        weighed = {
            name: WeighedPlan(name, cost, cost * (1 - self.doubt), cost * (1 + self.doubt), cost)
            for name, cost in plans.items()
        }
        now = weighed.pop(self.running)
        review = Review(
            query="q",
            running=now,
            alternatives=tuple(sorted(weighed.values(), key=lambda one: (one.cost, one.plan))[: self.shown]),
            sure_gain=lambda plan: 0.0 if plan in self.unsure else now.low - weighed[plan].high,
            predict=lambda plan: None if plan in self.refused else SwitchCost("moving_state", self.price),
            time=number * SECOND,
            elapsed=self.elapsed,
            window=self.window,
            statistics=Statistics({}, step=self.step_length),
            options=options,
            memory=memory,  # type: ignore[arg-type]
            lost=self.lost,
            weigh=plans.get,
        )
        self.cost += now.cost
        self.decision = Adaptive().decide(review)
        if self.decision.plan is not None:
            self.running, self.switches = self.decision.plan, self.switches + 1
            self.cost += self.price
        return self.decision.memory

    def best_fixed(self, reviews: int) -> float:
        return min(sum(one) for one in zip(*(self.costs(number) for number in range(reviews)), strict=True))

    def best_schedule(self, reviews: int) -> float:
        """The least cost of one that knows the future."""
        least = np.full(len(self.costs(0)), self.price)
        least[0] = 0.0
        for number in range(reviews):
            least = np.minimum(least, least.min() + self.price) + np.array(self.costs(number))
        return float(least.min())


def test_it_moves_once_the_sign_has_held_for_as_many_reviews_as_are_asked() -> None:
    course = Course(lambda n: (100.0, 50.0)).run(1)
    assert (course.switches, course.running) == (1, "B")
    course = Course(lambda n: (100.0, 50.0))
    memory = course.step(0, {}, reviews=2)
    assert course.switches == 0 and course.decision is not None and "1 reviews of 2" in course.decision.reason
    course.step(1, memory, reviews=2)
    assert course.switches == 1


def test_where_switches_have_not_paid_more_reviews_must_agree_however_cheap_the_next_one_is() -> None:
    course = Course(lambda n: (100.0, 40.0) if n == 0 or n > 5 else (40.0, 100.0), price=1.0)
    memory: object = {}
    running = ""
    for number in range(12):
        memory = course.step(number, memory)
        running += course.running
    assert running == "BAAAAAABBBBB"


@pytest.mark.parametrize(("lost", "expected"), [(3.0, "BAAAAAABBBBB"), (4.0, "BAAAAABBBBBB")])
def test_where_what_was_lost_is_the_price_of_a_review_and_a_move_times_the_bar_one_review_is_enough(
    lost: float, expected: str
) -> None:
    course = Course(lambda n: (100.0, 40.0) if n == 0 or n > 5 else (40.0, 100.0), price=1.0, lost=lost)
    memory: object = {}
    running = ""
    for number in range(12):
        memory = course.step(number, memory)
        running += course.running
    assert running == expected


def test_a_hurdle_makes_the_next_review_wait_and_a_better_plan_that_must_wait_is_regretted() -> None:
    course = Course(lambda n: (100.0, 40.0) if n == 0 or n > 5 else (40.0, 100.0), price=1.0)
    memory: object = {}
    found = []
    for number in range(8):
        memory = course.step(number, memory)
        assert course.decision is not None
        found.append((course.decision.hurdle, course.decision.regret > 0))
    assert found == [(2.0, False), (4.0, False), *[(2.0, False)] * 4, (4.0, True), (4.0, False)]


@pytest.mark.parametrize("price", [PRICE, 1.0])
def test_noise_moves_nothing_in_5000_reviews(price: float) -> None:
    noise = np.random.default_rng(1).normal(1.0, 0.02, (5000, 3))
    course = Course(lambda n: tuple(100 * noise[n]), price=price).run(5000)
    assert course.switches == 0


def test_a_gain_that_is_not_sure_moves_nothing() -> None:
    assert Course(lambda n: (100.0, 80.0), doubt=0.15).run(50).switches == 0
    assert Course(lambda n: (100.0, 80.0), doubt=0.02).run(50).switches == 1


def test_a_gain_that_does_not_last_pays_no_dear_move() -> None:
    assert Course(lambda n: (100.0, 50.0), price=1e6).run(200).switches == 0


@pytest.mark.parametrize("price", [PRICE, 2.0])
@pytest.mark.parametrize("window", [5.0, 0.4])
@pytest.mark.parametrize("period", [1, 2, 3, 4, 5, 7, 10, 14, 20, 40, 100])
def test_a_stream_that_flaps_costs_no_more_than_the_best_fixed_plan_by_much(
    period: int, window: float, price: float
) -> None:
    """Whatever the pace, also the one that turns as soon as the policy has moved, be it after one review or two."""

    def flaps(n: int) -> tuple[float, float]:
        return (100.0, 40.0) if n // period % 2 else (40.0, 100.0)

    course = Course(flaps, window=window, price=price).run(3000)
    assert course.cost <= 1.3 * course.best_fixed(3000)


@pytest.mark.parametrize("price", [PRICE, 2.0])
@pytest.mark.parametrize("window", [5.0, 0.4])
def test_an_adversary_that_sees_the_policy_gains_little(window: float, price: float) -> None:
    """Whatever runs is dear from then on, the other plan cheap: nothing deterministic does better by much."""
    seen: list[tuple[float, float]] = []
    course = Course(lambda n: seen[n], window=window, price=price)
    memory: object = {}
    for number in range(2000):
        seen.append((100.0, 60.0) if course.running == "A" else (60.0, 100.0))
        memory = course.step(number, memory)
    assert course.switches < 60
    assert course.cost <= 1.3 * course.best_fixed(2000)


@pytest.mark.parametrize("window", [5.0, 0.4])
@pytest.mark.parametrize("period", [150, 400])
def test_a_stream_that_drifts_is_followed(period: int, window: float) -> None:
    def drifts(n: int) -> tuple[float, ...]:
        return tuple(50.0 if n // period % 3 == plan else 100.0 for plan in range(3))

    course = Course(drifts, window=window).run(2400)
    assert course.cost <= 1.15 * course.best_schedule(2400)
    assert course.cost < course.best_fixed(2400)


def test_what_did_not_pay_raises_the_bar_for_that_pair() -> None:
    course = Course(lambda n: (100.0, 40.0) if n < 1 else (40.0, 100.0)).run(12)
    assert course.decision is not None and course.switches == 2
    ledger = decode(Ledger, dict(course.decision.memory))
    assert ledger.bar("A", "B") > 1 and ledger.bar("A", "C") == 1


@pytest.mark.parametrize("window", [5.0, 0.6, 0.4])
def test_what_paid_raises_no_bar_however_late_the_next_review_comes(window: float) -> None:
    course = Course(lambda n: (100.0, 50.0), window=window).run(30)
    assert course.decision is not None and course.switches == 1
    ledger = decode(Ledger, dict(course.decision.memory))
    assert (ledger.bars, ledger.switch) == ((), None)


def test_a_switch_has_paid_also_where_so_many_plans_are_better_by_then_that_the_old_one_is_not_shown() -> None:
    course = Course(lambda n: (100.0, 50.0, 60.0), shown=1).run(3)
    assert (course.running, course.switches) == ("B", 1)
    course = Course(lambda n: (100.0, 50.0, 60.0), shown=1).run(30)
    assert course.decision is not None and course.switches == 1
    ledger = decode(Ledger, dict(course.decision.memory))
    assert (ledger.bars, ledger.switch) == ((), None)


def test_a_plan_that_is_not_shown_but_costs_little_more_is_as_good_as_before() -> None:
    """How long plans stay the best is not told by which of many good ones is in front."""
    course = Course(lambda n: (100.0, 50.0 + n % 2, 50.5, 51 - n % 2), shown=1).run(40)
    assert course.decision is not None
    assert decode(Ledger, dict(course.decision.memory)).lifetime == 0


def test_a_switch_that_has_paid_is_judged_when_its_rest_is_over_and_one_that_has_not_yet_gets_more_time() -> None:
    """Two windows of a second: a review amid the switch, and the next one when it has rested for so long."""
    for price, judged in ((30.0, True), (250.0, False)):
        course = Course(lambda n: (100.0, 50.0), window=1.0, price=price)
        memory = course.step(1, course.step(0, {}, patience=100), patience=100)
        assert course.running == "B"
        course.elapsed = 2.0
        memory = course.step(3, memory, patience=100)
        ledger = decode(Ledger, dict(memory))  # type: ignore[call-overload]
        assert (ledger.switch is None) is judged and ledger.bars == ()


def test_where_the_cheapest_plan_cannot_be_carried_or_is_not_sure_the_next_one_is_taken() -> None:
    for unable in ({"refused": frozenset("C")}, {"unsure": frozenset("C")}):
        course = Course(lambda n: (100.0, 50.0, 40.0), **unable).run(5)
        assert (course.running, course.switches) == ("B", 1)
    none = Course(lambda n: (100.0, 50.0, 40.0), refused=frozenset("BC")).run(5)
    assert none.decision is not None and "no allowed strategy can migrate it to C" in none.decision.reason


def test_a_move_that_was_made_by_hand_is_not_charged_with_the_price_of_another() -> None:
    course = Course(lambda n: (100.0, 50.0, 45.0))
    memory: object = {}
    for number in range(20):
        if number == 10:
            course.running = "B"
        memory = course.step(number, memory)
        ledger = decode(Ledger, dict(memory))  # type: ignore[call-overload]
        assert ledger.switch is None or (number < 10 and ledger.switch.new == "C")
    assert course.switches == 1 and ledger.plan == "B"


def test_reasons_speak_of_work_only_where_nothing_else_is_weighed() -> None:
    plans = {
        name: WeighedPlan(name, cost, cost, cost, work=1.0, memory=cost) for name, cost in (("A", 9e3), ("B", 1e3))
    }
    course = Review(
        query="q",
        running=plans["A"],
        alternatives=(plans["B"],),
        sure_gain=lambda plan: 8e3,
        predict=lambda plan: SwitchCost("moving_state", 1.0),
        time=0,
        elapsed=1.0,
        window=5.0,
        statistics=Statistics({}),
        options={"reviews": 1},
    )
    decision = Adaptive().decide(course)
    assert decision.plan == "B" and " ms" not in decision.reason and "of weighed cost" in decision.reason


@pytest.mark.parametrize("options", [{"reviews": 1e300}, {"margin": 1001}, {"patience": 1e9}])
def test_an_option_by_which_it_could_never_move_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(QueryError, match="from 0 to 1000"):
        settings_of_values({"mode": "auto", "options": options}, "here")


def test_what_it_remembers_survives_a_checkpoint() -> None:
    course = Course(lambda n: (100.0, 40.0) if n < 3 else (40.0, 100.0)).run(12)
    assert course.decision is not None
    ledger = decode(Ledger, dict(course.decision.memory))
    assert ledger.plan == course.running
