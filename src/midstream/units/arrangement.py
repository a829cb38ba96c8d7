"""What follows from the queries and streams of a manifest alone: found once for as long as these stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from midstream.admission.admit import Admitted
from midstream.logical.query import query_of
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.model.schema import StreamSchema
from midstream.units.answers import level_of, pushed_below, streams_by_level
from midstream.units.program import Program


@dataclass(frozen=True)
class Arrangement:
    """How the queries of a manifest lie in a step.

    `groups` are the lane groups in use, sorted, and `level_of` has the levels of those that are not of level 0;
    `in_lanes` are those with queries that are not spread over nodes, and `some_spread` says whether there are others.
    `answering` has by level the streams of answers that are known before it runs, `read` for each query by itself and
    each chain the pushed streams that it reads. `programs` has the programs of groups that were compiled, and `counted`
    the streams whose arrivals count, once that is known; `choosing` has the queries that move together, of those that
    have more than one plan, `joined` how many streams these join in all, and `inner_joins` by query the counters of
    each inner join of its plan; `ordering` has the queries whose conditions a chart can order. `silent` has what is
    admitted of each stream that brings no row.
    """

    groups: tuple[str, ...]
    level_of: Mapping[str, int]
    in_lanes: frozenset[str]
    some_spread: bool
    answering: tuple[tuple[StreamSchema, ...], ...]
    read: tuple[frozenset[str], ...]
    programs: dict[str, Program] = field(default_factory=dict)
    counted: list[tuple[str, ...]] = field(default_factory=list)
    choosing: list[Sequence[tuple[str, ...]]] = field(default_factory=list)
    ordering: list[Sequence[str]] = field(default_factory=list)
    joined: list[int] = field(default_factory=list)
    inner_joins: dict[str, tuple[tuple[CounterKey, ...], ...]] = field(default_factory=dict)
    silent: dict[str, Admitted] = field(default_factory=dict)

    @staticmethod
    def of(manifest: Manifest) -> Arrangement:
        """Find the arrangement of a manifest."""
        entries = manifest.queries.values()
        return Arrangement(
            tuple(sorted({entry.group for entry in entries})),
            _levels(manifest),
            frozenset(entry.group for entry in entries if entry.nodes is None),
            any(entry.nodes is not None for entry in entries),
            tuple(map(tuple, streams_by_level(manifest))),
            _read(manifest),
        )


def arrangement_of(manifest: Manifest) -> Arrangement:
    """Return the arrangement of a manifest, found once."""
    known = known_arrangement(manifest)
    if known is None:
        known = manifest.__dict__[_ARRANGEMENT] = Arrangement.of(manifest)
    return known


def known_arrangement(manifest: Manifest) -> Arrangement | None:
    """Return the arrangement of a manifest, if it was found."""
    return manifest.__dict__.get(_ARRANGEMENT)


def keep_arrangement(before: Manifest, after: Manifest) -> Manifest:
    """Keep the arrangement of the manifest before for the later one, if what it follows from has stayed the same."""
    known = before.__dict__.get(_ARRANGEMENT)
    if known is None or _ARRANGEMENT in after.__dict__:
        return after
    same = (
        after.queries is before.queries
        and after.streams is before.streams
        and after.chains is before.chains
        and after.shared_sources is before.shared_sources
        and after.tables is before.tables
        and (after.sharing, after.reshared) == (before.sharing, before.reshared)
    )
    # A chain runs by another plan in the step that it begins with.
    if same and not [1 for chain in after.chains.values() if chain.since >= before.step]:
        after.__dict__[_ARRANGEMENT] = known
    return after


def concluded_arrangement(before: Manifest, after: Manifest) -> Manifest:
    """Keep the arrangement that a step ran by for the manifest after it: only what was counted has changed."""
    if _ARRANGEMENT in before.__dict__:
        after.__dict__[_ARRANGEMENT] = before.__dict__[_ARRANGEMENT]
    return after


_ARRANGEMENT = "_arrangement"


def _levels(manifest: Manifest) -> dict[str, int]:
    if len(manifest.pushed_streams) == len(manifest.streams):
        return {}
    known: dict[str, int] = {}
    return {e.group: level_of(manifest, query_of(e), known) for e in manifest.queries.values()}


def _read(manifest: Manifest) -> tuple[frozenset[str], ...]:
    alone = [query_of(entry) for entry in manifest.queries.values() if not entry.shares]
    queries = [frozenset(query.children) for query in alone]
    queries += [frozenset(chain.streams) for chain in manifest.chains.values()]
    if len(manifest.pushed_streams) == len(manifest.streams):
        return tuple(queries)
    known: dict[str, frozenset[str]] = {}
    return tuple(pushed_below(manifest, read, known) for read in queries)
