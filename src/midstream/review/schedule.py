"""When a plan is reviewed: as soon as it does more than the last review foresaw, and every so often anyway.

Counters decide, never a clock. All plans of a query take in the same rows and give out the same results. What sets
them apart are the rows that inner joins make (Cluet and Moerkotte, ICDT 1995), and comparisons: what a plan could
spare. What it does of these beyond what was foreseen pays for a review (ski rental), as does a share of all work. So a
change is ignored no longer than it takes to lose what a review costs, after a switch what a review and a switch cost.
Reviews that find nothing cost that share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from midstream.logical.query import query_of
from midstream.migration.strategy_contract import discovered
from midstream.model.frozen import revised
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.optimization import Optimization, OptimizerSettings, ReviewBudget
from midstream.model.window import SECOND
from midstream.proposals.plan_group import PlanGroup, group_of, groups_with_choice, is_quiet, query_time, settings_of
from midstream.review.review_price import ANY_STEP, SHORT, UNITS, any_step, price, trees_at_once, usual_step, worked
from midstream.units.arrangement import keep_arrangement, known_arrangement
from midstream.units.program import unit_of

MADE = UNITS.comparison + UNITS.result + UNITS.insert + UNITS.probe  # ns for a row that an inner join makes
SAVED = 4.0  # so many reviews can be saved up for
STEPS = 4  # so many steps go without a look where they do little
MUCH = 500_000.0  # ns of work after which a look is worth its while at once
LITTLE = 0.1  # the share of all its work by which a plan may do more than foreseen
RISEN = 1.3  # a plan does so many times what was foreseen: then a review comes as soon as the budget allows
SPARES = 4.0  # so many times the share of reviews in all work is theirs in what another plan might spare
TIMES = 8.0  # so many times the work of a usual step and a review: an attempt in vain costs an eighth of the step
PAYS = 0.5  # the share of excess work that pays for a review: not all of it could be spared


@dataclass(frozen=True)
class Candidate:
    """Queries whose plan a review is wanted for at an event time."""

    one: PlanGroup
    now: int

    @property
    def price(self) -> float:
        """What the review takes that no excess work has paid for."""
        return max(self.one.kept.price - self.one.kept.excess, 0.0)


def look(manifest: Manifest, exceeded: Mapping[CounterKey, int] | None = None) -> tuple[Manifest, list[Candidate]]:
    """Compare what each plan did since the last look with what was foreseen; return the reviews that are wanted.

    What inner joins are about to make, `exceeded`, is work beyond that.
    """
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
        over = now - kept.reviewed >= settings.review and _is_for_budget(manifest, settings, kept, kept.pace, now)
        more = sum([exceeded.get(key, 0) for keys in inner_joins(manifest, lead) for key in keys]) if exceeded else 0
        if not (kept.searched or over or more or _looks(manifest, lead, kept)):
            continue
        if any(manifest.queries[name].migrations for name in names) or manifest.queries[lead].since >= manifest.step:
            continue
        one = group_of(manifest, names)
        if not one.is_reviewed or is_quiet(one.settings, now):
            continue
        after = _looked(manifest, lead, kept, now)
        after = seen[lead] = revised(after, excess=after.excess + PAYS * MADE * more) if more else after
        risen = after.plan and after.pace > RISEN * (after.spared or 0.0)
        risen = risen and _is_for_budget(manifest, settings, kept, after.pace, now)
        if after.searched or over or risen or after.excess > after.price * after.hurdle:
            wanted.append(Candidate(replace(one, kept=after), now))
    looked = revised(manifest, optimizations={**manifest.optimizations, **seen}) if seen else manifest
    return keep_arrangement(manifest, looked), wanted


def in_turn(manifest: Manifest, wanted: Iterable[Candidate]) -> list[Candidate]:
    """Choose what is reviewed in this step: searches that go on, then the longest waiting first.

    Together they take no more than a usual step, except a single one. Where the first in turn cannot be paid yet, only
    those go before it that have paid for themselves: so none starves.
    """
    usual, spent, booked, poor, chosen = usual_step(manifest) + SHORT, 0.0, 0.0, False, list[Candidate]()
    for one in sorted(wanted, key=lambda c: (not c.one.kept.searched, c.one.kept.reviewed_in, c.one.kept.reviewed)):
        poor |= booked + one.price > max(_left(manifest, one.one.settings.effort), 0.0)
        if chosen and spent + one.one.kept.price > usual:
            break
        if one.one.kept.searched or not one.price or not poor:
            chosen.append(one)
            spent, booked = spent + one.one.kept.price, booked + one.price
    return chosen


def paid(manifest: Manifest, one: PlanGroup, price: float) -> Manifest:
    """Book a review: what excess work did not pay for is taken from the budget."""
    # What one step brings in is never too much to save: reviews of many queries take it all.
    dearest = max([price, *(kept.price for kept in manifest.optimizations.values())])
    most = max(SAVED * dearest, one.settings.effort * usual_step(manifest))
    left = min(_left(manifest, one.settings.effort), most) - max(price - one.kept.excess, 0.0)
    return replace(manifest, reviews=ReviewBudget(manifest.step, worked(manifest.totals), left))


def _is_for_budget(manifest: Manifest, settings: OptimizerSettings, kept: Optimization, pace: float, now: int) -> bool:
    # No plan can save more than what another might spare, so reviews take a limited share of that, too.
    spared = pace * (now - (kept.reviewed or 0)) / SECOND
    is_worth_it = kept.price * kept.hurdle * (1 - settings.effort) <= SPARES * settings.effort * spared
    return is_worth_it and _left(manifest, settings.effort) >= kept.price - kept.excess


def _left(manifest: Manifest, effort: float) -> float:
    kept = manifest.reviews
    constant = any_step(manifest) * (manifest.step - kept.step)
    return kept.left + effort * (worked(manifest.totals) - kept.worked + constant)


def _looks(manifest: Manifest, lead: str, kept: Optimization) -> bool:
    # A look must be a small share of what was done since the last one.
    done, before = manifest.queries[lead].counters, kept.counted or (0, 0, 0)
    work = UNITS.joining(done.rows_in - before[0], done.comparisons - before[1], done.rows_out - before[2])
    return manifest.step - kept.seen_in >= STEPS or abs(work) >= MUCH


def _looked(manifest: Manifest, lead: str, kept: Optimization, now: int) -> Optimization:
    done, before, seconds = _done(manifest, lead), kept.counted, (now - kept.seen) / SECOND
    after = revised(kept, seen=now, seen_in=manifest.step, counted=done)
    # After a migration other joins are counted, and where a query has left its chain less was done than before.
    if seconds <= 0 or not before or len(before) != len(done) or any(map(int.__gt__, before, done)):
        return after
    rows, comparisons, results, *made = (now - then for now, then in zip(done, before, strict=True))
    spared = UNITS.comparison * max(comparisons - results, 0) + MADE * sum(made)
    steps = (manifest.step - kept.seen_in) * (ANY_STEP + UNITS.operator_step * len(made))
    whole = UNITS.joining(rows, results, results) + UNITS.insert * rows + spared + steps
    foreseen = spared / seconds if kept.spared is None else kept.spared
    excess = max(kept.excess + PAYS * (spared - foreseen * seconds - LITTLE * whole), 0.0)
    if kept.proposal is not None and kept.proposal.state == "waits":
        excess = 0.0  # The user's answer ends what is lost, and another review does not.
    return revised(after, pace=spared / seconds, spared=foreseen, excess=excess)


def _done(manifest: Manifest, lead: str) -> tuple[int, ...]:
    # Since it began: in all, and the rows that each inner join of its plan has made.
    counted, found = manifest.queries[lead].counters, manifest.operators
    made = [sum([found[key].rows_out for key in keys if key in found]) for keys in inner_joins(manifest, lead)]
    return counted.rows_in, counted.comparisons, counted.rows_out, *made


def inner_joins(manifest: Manifest, lead: str) -> tuple[tuple[CounterKey, ...], ...]:
    """List the counters of each inner join of a query's plan."""
    known = known_arrangement(manifest)
    joins = {} if known is None else known.inner_joins
    if lead not in joins:
        unit = unit_of(manifest, lead)
        keys = (tuple([CounterKey(unit.group, one) for one in ids]) for ids in unit.box(unit.plan).inner_joins)
        joins[lead] = tuple(keys)
    return joins[lead]


class JoinBounds:
    """Bound the rows that an inner join may make before the step stops, is reviewed and runs again.

    A plan that did next to nothing may have to make millions of rows in one step, as where a hot key comes to one more
    stream. Counters tell that only afterwards. So a join that is about to make rows for several times the work of a
    usual step and of a review stops first: what was done so far is lost, and if no plan is better the step takes that
    much more.
    """

    def __init__(self, manifest: Manifest, *, migrates: bool) -> None:
        """Take the manifest that a step runs by, and whether a migration begins or runs in the step."""
        self._manifest, self._migrates = manifest, migrates

    def most(self, join: CounterKey) -> int | None:
        """Return how many rows a join may make; None where nothing bounds it."""
        return self._found.get(join)

    @cached_property
    def _found(self) -> dict[CounterKey, int]:
        # Found when a join asks for the first time: in most steps none does.
        manifest, found = self._manifest, dict[CounterKey, int]()
        for names in () if self._migrates else groups_with_choice(manifest):
            kept, now = manifest.optimizations.get(names[0]), query_time(manifest, names[0])
            if kept is None or kept.reviewed is None or now is None or kept.searched:
                continue
            one, steps = group_of(manifest, names), manifest.step - kept.reviewed_in
            if one.settings.mode != "auto" or not one.is_reviewed or is_quiet(one.settings, now) or not steps:
                continue
            moves = any(manifest.queries[name].migrations for name in names)
            if moves or manifest.queries[names[0]].since >= manifest.step or trees_at_once(manifest, one) is not None:
                continue
            pace = max(kept.pace, kept.spared or 0.0) * (now - kept.reviewed) / SECOND / steps
            most = TIMES * (usual_step(manifest) + kept.price * kept.hurdle + pace) / MADE
            found |= {key: int(most) for keys in inner_joins(manifest, names[0]) for key in keys}
        return found
