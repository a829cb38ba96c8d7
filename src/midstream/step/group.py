"""Which lane group a query joins."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

from midstream.language.query import Query
from midstream.model.manifest import Manifest
from midstream.plan.signature import canonical
from midstream.runtime.lane_key import SINGLE, Spread, fits, group_name, lane_key, spread_text


def group_for(manifest: Manifest, query: Query) -> tuple[str, Spread]:
    """The lane group of a query, and what spreads its rows.

    A group whose rows are spread as the query needs, so that it can share them; else one of its own.
    """
    key = lane_key(canonical(query)[0])
    own, mine = group_name(key), spread_text(key)
    if key is None:
        return own, mine
    theirs: dict[str, set[Spread]] = {}
    for entry in manifest.queries.values():
        theirs.setdefault(entry.group, set()).add(entry.spread)
    names = sorted(theirs.keys() - {SINGLE}, key=lambda name: (name != own, name))
    fitting = (name for name in names if _fits_all(mine, theirs[name]))
    return next(fitting, None) or next(name for name in _names(own) if name not in theirs), mine


def _names(own: str) -> Iterator[str]:
    yield own
    yield from (f"{own}-{n}" for n in count(1))


def _fits_all(mine: Spread, theirs: Collection[Spread]) -> bool:
    """Whether a key agrees with those of a group: with each on what both have, and with one at least on something."""
    spread_over = {stream: text for spread in theirs for stream, text in spread}
    return fits(mine, tuple(sorted(spread_over.items())))
