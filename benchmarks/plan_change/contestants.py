"""Who competes: every strategy that is there, in the variants worth a row, and what people do without one.

Strategies are discovered, so a new one has its row by being there. Those that lead to plans of a special form get the
scenario's plans in that form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import midstream as ms
from benchmarks.plan_change.load import Load
from benchmarks.plan_change.scenario import Forms, Scenario

NEVER, RESTART, AUTO = "never_migrate", "restart_from_scratch", "auto"

Form = Callable[[Forms], str]
"""How a plan is written for a contestant."""


def tree(forms: Forms) -> str:
    """As a tree of joins."""
    return forms.tree


def orders(forms: Forms) -> str:
    """As probing orders."""
    return forms.orders


def eddy(forms: Forms) -> str:
    """As an eddy over all streams, which finds the order by itself.

    >>> eddy(Forms("((A B) C)", ""))
    'eddy(A B C)'
    """
    return f"eddy({' '.join(forms.tree.replace('(', ' ').replace(')', ' ').split())})"


def stairs(forms: Forms) -> str:
    """As an eddy whose join state is kept, with this routing tree."""
    return f"stairs({forms.tree})"


FORMS: Mapping[str, tuple[Form, Form]] = {
    "m_join": (tree, orders),
    "cacq": (tree, eddy),
    "stairs": (stairs, stairs),
    "jisc_stairs": (stairs, stairs),
}
"""The forms of the plans that a strategy starts from and leads to, where they are not trees."""

Options = Mapping[str, Any]


def _variants(strategy: str, load: Load) -> tuple[Options, ...]:
    """The options that a strategy runs with, a row each."""
    spare = {"background": load.budget}
    known: Mapping[str, tuple[Options, ...]] = {
        "parallel_track": ({}, {"hold_new": True}),
        "hybmig": ({}, spare),
        "jisc": ({}, spare),
        "ghm": ({"budget": load.budget},),
    }
    return known.get(strategy, ({},))


@dataclass(frozen=True)
class Contestant:
    """A way to answer the drift: a strategy with options, or one of the two ways to do without."""

    strategy: str
    options: Options = field(default_factory=dict)
    start: Form = tree
    target: Form = tree

    @property
    def name(self) -> str:
        """The strategy with its options, and for `never_migrate` the form it stays in if that is not a tree."""
        said = [name if value is True else f"{name}={value}" for name, value in self.options.items()]
        stays = [self.start.__name__] if self.strategy == NEVER and self.start is not tree else []
        return " ".join([self.strategy, *said, *stays])

    @property
    def is_strategy(self) -> bool:
        """Whether it migrates by a strategy."""
        return self.strategy not in (NEVER, RESTART)

    @property
    def reference(self) -> Contestant:
        """The same run without a migration."""
        return Contestant(NEVER, start=self.start, target=self.start)

    def plans(self, scenario: Scenario) -> tuple[str, tuple[tuple[float, str], ...]]:
        """The plan it starts with, and what it changes to and when; a change that changes nothing is left out."""
        first = current = self.start(scenario.old)
        changes = []
        for change in scenario.changes if self.strategy != NEVER else ():
            plan = self.target(change.to)
            if plan != current:
                changes.append((change.at, plan))
            current = plan
        return first, tuple(changes)


def every_strategy() -> tuple[str, ...]:
    """All that are there, and the chooser among them."""
    return tuple(dict.fromkeys((*ms.strategies(), AUTO)))


def contestants(strategies: Iterable[str], load: Load) -> tuple[Contestant, ...]:
    """Everybody, references first: a run is judged against the reference that starts in its own form."""
    named = [
        Contestant(name, options, *FORMS.get(name, (tree, tree)))
        for name in strategies
        for options in _variants(name, load)
    ]
    references = dict.fromkeys(c.start for c in [Contestant(NEVER), *named])
    return (*(Contestant(NEVER, start=form, target=form) for form in references), Contestant(RESTART), *named)
