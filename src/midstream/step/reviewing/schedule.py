"""When a plan is reviewed: as soon as it does more than the last review foresaw, and every so often anyway.

Counters decide, never a clock. All plans of a query take in the same rows and give out the same results. What sets
them apart are the rows that inner joins make (Cluet and Moerkotte, ICDT 1995), so these are compared join by join.
Reviews have a budget, a share of all work. Work beyond what was foreseen pays for a review too (ski rental): so no
change can be ignored for longer than it takes to lose what a review costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from midstream.language.query import query_of
from midstream.migration.base import discovered
from midstream.model.counters import Counters
from midstream.model.frozen import revised
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, ReviewBudget
from midstream.model.window import SECOND
from midstream.optimizer.cost.units import JoinUnitCosts
from midstream.optimizer.samples.reading import BUDGET
from midstream.optimizer.search.bushy import MOST_SOURCES
from midstream.step.arrangement import known_arrangement
from midstream.step.program import unit_of
from midstream.step.reviewing.group_settings import settings_of
from midstream.step.reviewing.plan_group import PlanGroup, group_of, groups_with_choice, is_quiet, query_time

UNITS = JoinUnitCosts()
MADE = UNITS.comparison + UNITS.result + UNITS.insert + UNITS.probe  # ns for a row that an inner join makes
ANY_STEP = 1_500_000.0  # ns of a step, however few its rows are
SHORT = 5_000_000.0  # ns that reviews may add to a step beyond a usual step's work
FEW_SOURCES = 8  # so many are weighed in one step, however small that is
TREE = 6_000.0  # ns for each source of a tree that a search weighs
SAVED = 4.0  # so many reviews can be saved up for
LOOKS = 20  # looks within a window
STEPS = 4  # so many steps go without a look where they do little
MUCH = 500_000.0  # ns of work after which a look is worth its while at once
MOVED = 0.5  # OM's threshold (002 §4.3): two paces differ by a greater share of the greater one
CHANCE = 3.0  # standard deviations of a count that are left to chance
MATTERS = 0.2  # the share of the work from which on the difference of one join counts
LITTLE = 0.1  # more work than foreseen, as a share of it, that is left to chance
REMEMBERED = 8  # paces that are known; bursts are reviewed when they are new only
TOTALS = 3  # a pace begins with rows in, comparisons and results; the rows of each inner join follow


def price(streams: int, rows: float, *, sliced: bool = False) -> float:
    """Foresee what a review takes, in nanoseconds, where the sources have so many rows alive together.

    Of a join of many sources, and of one whose search is `sliced`, that is what the step takes which decides.

    >>> [round(price(streams, rows) / 1e6, 1) for streams, rows in [(3, 1_000), (3, 180_000), (10, 1_000), (21, 1_000)]]
    [5.3, 12.5, 98.4, 46.9]
    """
    if sliced or streams > MOST_SOURCES:
        plans = 15_000_000.0 + 1_500_000.0 * streams
    else:
        plans = 800_000.0 * streams**2 - 2_500_000.0 + 20_000.0 * (1 << streams)
    return plans + 400.0 * min(rows, streams * BUDGET) + 15.0 * rows


@dataclass(frozen=True)
class Candidate:
    """Queries whose plan a review is wanted for at an event time, and whether a change of their streams wants it."""

    one: PlanGroup
    now: int
    called: bool

    @property
    def price(self) -> float:
        """What the review takes that no excess work has paid for."""
        return max(self.one.kept.price - self.one.kept.excess, 0.0)


def look(manifest: Manifest) -> tuple[Manifest, list[Candidate]]:
    """Compare what each plan did since the last look with what was foreseen; return the reviews that are wanted."""
    seen, wanted = dict[str, Optimization](), list[Candidate]()
    for names in groups_with_choice(manifest):
        lead, settings = names[0], settings_of(manifest, names[0])
        kept, now = manifest.optimizations.get(lead) or Optimization(), query_time(manifest, lead)
        if now is None or settings.mode == "off":
            continue
        if kept.reviewed is None:
            discovered()  # The strategies' modules load with a query's first step, not amid a review.
            first = price(len(query_of(manifest.queries[lead]).sources), 0.0)
            seen[lead] = replace(kept, reviewed=now, reviewed_in=manifest.step, price=first, seen=now)
            continue
        over = now - kept.reviewed >= settings.review
        due = (
            kept.urgent
            or (kept.until is not None and now >= kept.until)
            or (over and _can_pay(manifest, kept, settings.effort))
        )
        if not (due or _looks(manifest, lead, kept, now)):
            continue
        if any(manifest.queries[name].migrations for name in names) or manifest.queries[lead].since >= manifest.step:
            continue
        one = group_of(manifest, names)
        if not one.is_reviewed or is_quiet(one.settings, now):
            continue
        after = seen[lead] = _looked(revised(kept, seen_in=manifest.step), _done(manifest, lead), now)
        called = after.urgent or after.moved or after.excess > after.price
        over = now - kept.reviewed >= one.settings.review
        if called or over or (kept.until is not None and now >= kept.until):
            wanted.append(Candidate(replace(one, kept=after), now, called))
    return (revised(manifest, optimizations={**manifest.optimizations, **seen}) if seen else manifest), wanted


def in_turn(manifest: Manifest, wanted: Iterable[Candidate]) -> list[Candidate]:
    """Choose what is reviewed in this step: what can be paid, the longest waiting first.

    Together they take no more than a usual step, except a single one. Where the first in turn cannot be paid yet, only
    those go before it that a change of their streams pays for: so none starves. For a change the budget is overdrawn
    once.
    """
    usual, spent, poor, chosen = usual_step(manifest) + SHORT, 0.0, False, list[Candidate]()
    for one in sorted(wanted, key=lambda c: (not c.one.kept.urgent, c.one.kept.reviewed_in, c.one.kept.reviewed or 0)):
        left = _left(manifest, one.one.settings.effort)
        spared = one.price if one.called and not spent else 0.0  # A change overdraws the budget, once.
        if not one.one.kept.urgent and one.price and (poor or spent + one.price > left + spared):
            poor = True
        elif chosen and spent + one.one.kept.price > usual:
            break
        else:
            chosen.append(one)
            spent += one.one.kept.price
    return chosen


def paid(manifest: Manifest, one: PlanGroup, price: float) -> Manifest:
    """Book a review: what excess work did not pay for is taken from the budget."""
    most = SAVED * max([price, *(kept.price for kept in manifest.optimizations.values())])
    left = _left(manifest, one.settings.effort)
    left = min(left, most) - max(price - one.kept.excess, 0.0)
    return replace(manifest, reviews=ReviewBudget(manifest.step, _worked(manifest.totals), left))


def slice_price(streams: int) -> float:
    """Foresee what one step of a search in slices takes, in nanoseconds, except for the trees that are weighed."""
    return 3_000_000.0 + 150_000.0 * streams


def trees_at_once(manifest: Manifest, one: PlanGroup) -> int | None:
    """Return how many trees over many sources a review may weigh in one step, at least one. None: it weighs all.

    Few sources are always weighed at once, more of them where a usual step takes as long as that.
    """
    streams, most = len(query_of(manifest.queries[one.lead]).sources), usual_step(manifest) + SHORT
    if streams <= FEW_SOURCES or (streams <= MOST_SOURCES and price(streams, 0.0) <= most):
        return None
    return max(int((most - slice_price(streams)) / (TREE * streams)), 1)


def usual_step(manifest: Manifest) -> float:
    """Return what a step of the job takes on average, in nanoseconds, foreseen from its counters."""
    return _worked(manifest.totals) / max(manifest.step, 1) + _any_step(manifest)


def _any_step(manifest: Manifest) -> float:
    # However few its rows are.
    known = known_arrangement(manifest)
    joined = [] if known is None else known.joined
    if not joined:
        queries = [manifest.queries[names[0]] for names in groups_with_choice(manifest)]
        joined.append(sum(len(query_of(entry).sources) for entry in queries))
    return ANY_STEP + joined[0] * UNITS.operator_step


def _left(manifest: Manifest, effort: float) -> float:
    kept = manifest.reviews
    constant = _any_step(manifest) * (manifest.step - kept.step)
    return kept.left + effort * (_worked(manifest.totals) - kept.worked + constant)


def _can_pay(manifest: Manifest, kept: Optimization, effort: float) -> bool:
    return _left(manifest, effort) >= max(kept.price - kept.excess, 0.0)


def _looks(manifest: Manifest, lead: str, kept: Optimization, now: int) -> bool:
    # A look must be a small share of what was done since the last one.
    if manifest.step - kept.seen_in < STEPS:
        done, counted = manifest.queries[lead].counters, kept.counted or (0, 0, 0)
        before = UNITS.joining(counted[0], counted[1], counted[2])
        if abs(UNITS.joining(done.rows_in, done.comparisons, done.rows_out) - before) < MUCH:
            return False
    return now - kept.seen >= min(_pause(manifest, lead), settings_of(manifest, lead).review)


def _worked(done: Counters) -> float:
    return UNITS.joining(done.rows_in, done.comparisons, done.rows_out) + UNITS.insert * done.inserted


def _work_of(pace: Sequence[float]) -> float:
    rows_in, comparisons, results = pace[:TOTALS]
    return UNITS.joining(rows_in, comparisons, results) + UNITS.insert * rows_in + MADE * sum(pace[TOTALS:])


def _pause(manifest: Manifest, lead: str) -> float:
    windows = [source.window for source in query_of(manifest.queries[lead]).sources]
    return max((one.size if one is not None and one.kind == "range" else 0) for one in windows) / LOOKS


def _done(manifest: Manifest, lead: str) -> tuple[int, ...]:
    # Since it began: in all, and the rows that each inner join of its plan has made.
    known = known_arrangement(manifest)
    joins = {} if known is None else known.inner_joins
    if lead not in joins:
        unit = unit_of(manifest, lead)
        keys = (tuple([CounterKey(unit.group, one) for one in ids]) for ids in unit.box(unit.plan).inner_joins)
        joins[lead] = tuple(keys)
    counted, found = manifest.queries[lead].counters, manifest.operators
    made = [sum([found[key].rows_out for key in keys if key in found]) for keys in joins[lead]]
    return counted.rows_in, counted.comparisons, counted.rows_out, *made


def _looked(kept: Optimization, done: tuple[int, ...], now: int) -> Optimization:
    seconds, before = (now - (kept.seen or 0)) / SECOND, kept.counted
    # After a migration other joins are counted, and where a query has left its chain less was done than before.
    if seconds <= 0 or len(before) != len(done) or any(map(int.__gt__, before, done)):
        return revised(kept, seen=now, counted=done)
    pace = tuple([(after - had) / seconds for had, after in zip(before, done, strict=True)])
    like = next((known for known in kept.paces if not has_moved(known, pace, seconds)), None)
    if not kept.plan:  # Before the first review all that any plan might spare pays for it.
        foreseen = _work_of((pace[0], 0.0, pace[2]))
    else:
        foreseen = _work_of(like or (kept.paces[0] if kept.paces else pace))
    excess = max(kept.excess + (_work_of(pace) - (1 + LITTLE) * foreseen) * seconds, 0.0)
    moved = kept.moved or (like is None and bool(kept.paces) and bool(kept.plan))
    return revised(kept, seen=now, counted=done, paces=kept.paces or (pace,), pace=pace, excess=excess, moved=moved)


def has_moved(before: Sequence[float], pace: Sequence[float], seconds: float) -> bool:
    """Tell whether what was counted in so many seconds differs by more than the threshold and chance.

    >>> has_moved((100, 1000, 50), (100, 1200, 50), 10), has_moved((100, 1000, 50), (100, 3000, 50), 10)
    (False, True)
    """
    least = MATTERS * max(_work_of(before), _work_of(pace)) / MADE
    return len(before) != len(pace) or any(
        (at < TOTALS or abs(one - other) > least) and _differ(one * seconds, other * seconds)
        for at, (one, other) in enumerate(zip(before, pace, strict=True))
    )


def _differ(one: float, other: float) -> bool:
    return abs(one - other) > MOVED * (most := max(one, other)) + CHANCE * sqrt(most)
