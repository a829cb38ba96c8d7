"""The lineage of a shared source, from what the manifest says is held."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.language.expression import Expression
from midstream.model.holding import Chain, Held
from midstream.model.manifest import Manifest
from midstream.sharing.discovery import scheme
from midstream.state.lineage import MOST_FILTERS, Filter, Lineage


def lineage_of(
    manifest: Manifest, name: str, chain: Chain, conditions: Mapping[str, tuple[Expression, ...]]
) -> Lineage:
    """How long the rows of a holding live: for each filter as long as the widest window of its queries.

    `conditions` are the filters by their text; one that nobody asks any more is on its way out.
    """
    holding = manifest.holdings[name]
    if not scheme(manifest.sharing).filtered:
        widest = max(held.size for held in holding.filters.values())
        everything = Filter(MOST_FILTERS, (), widest, manifest.reshared)
        return Lineage((everything,), holding.stream, holding.kind, (), holding.founded)
    asked = [(held, conditions[text]) for text, held in holding.filters.items() if text in conditions]
    filters = [_filter(manifest, held, own) for held, own in asked]
    ordered = tuple(sorted(filters, key=lambda f: (-f.size, f.bit)))
    return Lineage(ordered, holding.stream, holding.kind, chain.cuts, holding.founded)


def _filter(manifest: Manifest, held: Held, conditions: tuple[Expression, ...]) -> Filter:
    since = max(held.since, manifest.reshared)
    return Filter(held.bit, conditions, held.size, since, held.floor, held.blind and held.since >= manifest.reshared)
