"""By which key each source is placed where rows are placed by a key."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.language.query import Query
from midstream.plan.key_classes import KeyClass, key_classes


def common_key(query: Query) -> KeyClass | None:
    """Find a key class that ties all sources, the first by its text; None where there is none."""
    return next((one for one in key_classes(query) if _sources(one) == set(query.aliases)), None)


def placement(query: Query) -> dict[str, KeyClass]:
    """Choose each source's key class to place it by: one that ties all sources, else that which ties most.

    A source in no equality is left out. Wang's cost model says nothing of this; a class that ties more sources is
    carried by more of the partial results that visit.
    """
    common, classes = common_key(query), key_classes(query)
    found = {}
    for label in query.aliases:
        own = [one for one in classes if label in _sources(one)]
        if own:
            found[label] = common or min(own, key=lambda one: (-len(_sources(one)), one.text()))
    return found


def always_carried(query: Query, orders: Sequence[Sequence[str]]) -> bool:
    """Return whether at every hop of these orders an equality ties the key that places the next source."""
    placed = placement(query)
    return all(
        label in placed and bool(placed[label].within(order[:at]))
        for order in orders
        for at, label in enumerate(order)
        if at
    )


def _sources(key: KeyClass) -> set[str]:
    return {alias for member in key.members for alias in member.aliases()}
