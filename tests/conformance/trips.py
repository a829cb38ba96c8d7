"""What a strategy is put through: a first plan, migrations with options, overlaps, ways back, disturbances."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from midstream.migration.strategy_contract import discovered
from midstream.units.choose import AUTO
from tests.conformance.forms import Rehearsal, mirrored, plan, shuffled
from tests.property.drive import Action, Migrate, Rescale, Restart

OBJECTIVES = ("latency", "work", "memory")
"""The values of the chooser's own option."""


@dataclass(frozen=True)
class Trip:
    """The migrations of one query, the first of them by the strategy the case counts for; `forms`: from and to."""

    strategy: str
    first: str
    moves: tuple[Migrate, ...]
    forms: tuple[str, str]

    @property
    def holds(self) -> bool:
        """Whether results may come in later steps than they are due: Zhu's timestamp order (Lemma 2.1)."""
        return any(move.options.get("hold_new") for move in self.moves)


def strategies() -> list[str]:
    """All that are discovered, and the chooser."""
    return [*discovered(), AUTO]


def values_of(strategy: str) -> dict[str, tuple[Any, ...]]:
    """The options that a strategy has, each with the values that are tried of it."""
    if strategy == AUTO:
        return {"objective": OBJECTIVES}
    return {option.name: option.examples() for option in discovered()[strategy].options}


def options(rng: Random, strategy: str) -> dict[str, Any]:
    """Some of the strategy's options."""
    return {name: rng.choice(tried) for name, tried in sorted(values_of(strategy).items()) if rng.random() < 0.55}


def trip(rng: Random, rehearsal: Rehearsal, name: str, strategy: str, steps: int) -> Trip | None:
    """A trip by the strategy, or None if it carries no plan of this query to another."""
    for form in shuffled(rng):
        first, chosen = plan(rng, rehearsal.spec, form), options(rng, strategy)
        found = rehearsal.target(rng, first, strategy, chosen) if first else None
        if first and found:
            # Before the first rows there is nothing to carry.
            at = rng.randrange(1, steps) if steps > 1 and rng.random() < 0.9 else rng.randrange(steps)
            move = Migrate(at, name, found[0], strategy, chosen)
            return Trip(strategy, first, (move, *further(rng, rehearsal, first, move, steps)), (form, found[1]))
    return None


def further(rng: Random, rehearsal: Rehearsal, first: str, move: Migrate, steps: int) -> list[Migrate]:
    """More migrations soon after, one of four by another strategy; of six two go back to the first plan.

    One of six keeps the tree and changes its sides only, which is not a migration to any state but one to every order.
    """
    found: list[Migrate] = []
    for _ in range(rng.choice((0, 0, 1, 2, 3))):
        at = min(move.step + rng.choice((0, 1, 1, 1, 2, 3)), steps - 1)
        strategy = rng.choice(strategies()) if rng.random() < 0.25 else move.strategy
        chosen = options(rng, strategy)
        aim = rng.choice((first, first, mirrored(rehearsal.spec, move.plan), None, None, None))
        met = rehearsal.accepted(move.plan, aim, strategy, chosen) if aim else None
        target = met or next(iter(rehearsal.target(rng, move.plan, strategy, chosen) or ()), None)
        if target:
            move = Migrate(at, move.query, target, strategy, chosen)
            found.append(move)
    return found


def disturbances(rng: Random, steps: int) -> tuple[Action, ...]:
    """In four cases of ten: restarts, also by a crash, and changes of the number of lanes."""
    found: list[Action] = []
    if rng.random() < 0.25:
        found += [Restart(rng.randrange(steps), rng.random() < 0.5) for _ in range(rng.choice((1, 2)))]
    if rng.random() < 0.2:
        found += [Rescale(rng.randrange(steps), rng.choice((1, 2, 3))) for _ in range(rng.choice((1, 2)))]
    return tuple(found)
