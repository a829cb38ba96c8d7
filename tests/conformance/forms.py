"""Plan forms, and what a strategy accepts: asked of the engine itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from midstream.commands.add_query import AddQuery
from midstream.commands.migrate import check_migration
from midstream.model.errors import StrategyError
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.step.plan_step import plan_step
from midstream.units.choose import AUTO
from midstream.units.draft import MigrationStart
from tests.oracle.spec import QuerySpec, StreamSpec
from tests.property.queries import tree

FORMS = {"left-deep": 3, "bushy": 4, "orders": 1, "eddy:lottery": 1, "eddy:rank": 1, "stairs": 2}
"""What plans look like, and how often: most is to be told of trees. A bushy tree may be left-deep by chance."""


def plan(rng: Random, spec: QuerySpec, form: str) -> str | None:
    """A plan of a form, the sources in any order, or None if the query has none of that form."""
    aliases = rng.sample(spec.aliases, len(spec.aliases))
    if spec.subtracted:
        first = spec.aliases[0]
        rest = [alias for alias in aliases if alias != first]
        return tree(rng, [first, *rest], left_deep=True) if form == "left-deep" else None
    if form == "orders":
        orders = (f"{a}: {' '.join(rng.sample([b for b in aliases if b != a], len(aliases) - 1))}" for a in aliases)
        return f"[{' | '.join(orders)}]"
    if form == "left-deep":
        return tree(rng, aliases, left_deep=True)
    if len(aliases) == 1:
        return None
    if form.startswith("eddy"):
        return f"{form.removesuffix(':lottery')}({' '.join(aliases)})"
    shape = bushy(rng, aliases)
    return f"stairs({shape})" if form == "stairs" else shape


def bushy(rng: Random, aliases: list[str]) -> str:
    """A tree over the sources in this order; every other one is parted in the middle, so that it has two low joins."""
    if len(aliases) == 1 or rng.random() < 0.5:
        return tree(rng, aliases, left_deep=False)
    middle = len(aliases) // 2
    return f"({bushy(rng, aliases[:middle])} {bushy(rng, aliases[middle:])})"


def shuffled(rng: Random) -> list[str]:
    """The forms, those first that are wanted more often."""
    return sorted(FORMS, key=lambda form: rng.random() ** (1 / FORMS[form]), reverse=True)


def mirrored(spec: QuerySpec, notation: str) -> str | None:
    """The tree with the sides of each pair changed, or None for what is not a tree or cannot be turned round.

    >>> from tests.oracle.spec import SourceSpec
    >>> mirrored(QuerySpec((SourceSpec("A", "A"),), ()), "stairs(((A B) C))")
    'stairs(( C ( B A ) ))'
    """
    inner = notation.removeprefix("stairs(").removesuffix(")") if notation.startswith("stairs(") else notation
    if spec.subtracted or not re.fullmatch(r"[\w\s()]+", inner) or inner.startswith("eddy"):
        return None
    words = re.findall(r"[()]|\w+", inner)
    swapped = " ".join({"(": ")", ")": "("}.get(word, word) for word in reversed(words))
    return notation.replace(inner, swapped)


def joins(notation: str) -> set[frozenset[str]]:
    """The sets of sources that stand in a bracket of a plan, in whatever order.

    >>> joins("stairs(((A B) C))") == joins("stairs((C (B A)))")
    True
    """
    found, open_ = set[frozenset[str]](), list[set[str]]()
    for word in re.findall(r"[()]|[^\s()]+", notation):
        if word == "(":
            open_.append(set())
        elif word == ")":
            closed = open_.pop()
            found.add(frozenset(closed))
            if open_:
                open_[-1] |= closed
        elif open_:
            open_[-1].add(word)
    return found


class Rehearsal:
    """A query that sees no rows: which migrations of it are accepted."""

    def __init__(self, streams: tuple[StreamSpec, ...], spec: QuerySpec) -> None:
        self.spec = spec
        schemas = {s.name: StreamSchema(s.name, s.schema, s.timestamp, s.lateness) for s in streams}
        self.manifest = plan_step(Manifest(streams=schemas), [AddQuery("q", spec.cql())]).manifest

    def accepted(self, old: str, new: str, strategy: str, options: Mapping[str, Any]) -> str | None:
        """The new plan, as a manifest writes it, if the strategy carries the query there from the old one.

        The chooser finds a strategy wherever there is one, and there always is.
        """
        if strategy == AUTO:
            strategy, options = "moving_state", {}
        standing = self.manifest.with_query("q", replace(self.manifest.queries["q"], plan=old))
        try:
            start = MigrationStart("q", new, strategy, options)
            return check_migration(standing, standing.queries["q"], start).notation()
        except StrategyError:
            return None

    def target(self, rng: Random, old: str, strategy: str, options: Mapping[str, Any]) -> tuple[str, str] | None:
        """A plan to which the strategy carries it from the old one, with other joins if there is one; and its form."""
        alike: tuple[str, str] | None = None
        for form in shuffled(rng):
            # Of few sources there are few plans, and one of them is the old one.
            for new in (plan(rng, self.spec, form) for _ in range(3)):
                found = self.accepted(old, new, strategy, options) if new not in (None, old) else None
                if found and joins(found) != joins(old):
                    return found, form
                alike = alike or (found and (found, form)) or None
        return alike
