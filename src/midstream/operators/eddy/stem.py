"""SteMs: the rows of one source, to be met by combinations that come by any way (JISC §3.1).

What a combination has been joined with is a bitmap, with a bit for each source. A SteM may be visited at any time, so
it knows for any bitmap by which of its indexes and under which conditions it is met. It keeps one index for each set of
keys that ties it to one other source, and none for those that only several sources have together, for their number
grows with the subsets of the sources: equalities beyond the index are conditions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from midstream.expr.expression import Expression
from midstream.logical.query import EquiPredicate, Query
from midstream.operators.binding import Binding, compile_source
from midstream.operators.join_condition import JoinCondition, join_condition
from midstream.operators.source import SourceOperator
from midstream.plan.key_classes import KeyClass, key_classes
from midstream.state.specs import StateSpec

_CROSS = JoinCondition("scan", (), (), None, None, (), ())


@dataclass(frozen=True)
class Key:
    """A key class seen from one source: its own members, and those of others with their bits, in the class's order."""

    key_class: KeyClass
    own: tuple[Expression, ...]
    others: tuple[tuple[int, Expression], ...]

    def ties(self, done: int) -> bool:
        """Whether one of these sources has the key, too."""
        return any(bit & done for bit, _ in self.others)

    def conditions(self, done: int) -> list[Expression]:
        """What makes the rows of the source equal to what these sources have joined, where no index does."""
        here = [(bit, member) for bit, member in self.others if bit & done]
        if not here:
            return []
        (bit, first), *rest = here
        # Members of one source are equal to each other only by way of another source.
        pairs = [(first, self.own[0]), *((member, first) for member in self.own[1:])]
        pairs += [(member, self.own[0]) for other, member in rest if other == bit]
        return [self.key_class.equal(one, another) for one, another in pairs]


@dataclass(frozen=True)
class Stem:
    """The SteM of one source.

    `partners` are the sources that an index ties it to, the best first; `conditions` the predicates that are no
    equalities, with the bitmap of the other sources they need.
    """

    source: SourceOperator
    bit: int
    query: Query
    keys: tuple[Key, ...]
    conditions: tuple[tuple[int, Expression], ...]
    partners: tuple[tuple[int, str], ...]
    indexes: tuple[StateSpec, ...]

    @property
    def label(self) -> str:
        """The source's label."""
        return self.source.spec.label

    def describe(self) -> str:
        """The source and what it is indexed by."""
        indexes = [f"{s.index} {', '.join(e.text() for e in s.key)}".strip() for s in self.indexes]
        return f"{self.label} [{'; '.join(indexes)}]"

    def tied(self, done: int) -> bool:
        """Whether a visit from this bitmap is more than a cross product."""
        return bool(done & self._near) or any(need & done == need for need, _ in self.conditions)

    @property
    def scanned(self) -> bool:
        """Whether a condition may tie it to sources that none of its indexes does."""
        return any(not need & self._near for need, _ in self.conditions)

    def join_condition(self, done: int) -> JoinCondition:
        """The join condition from what this bitmap has joined: along the index of the best partner in it."""
        bit, partner = next(((bit, label) for bit, label in self.partners if bit & done), (0, ""))
        on = self._straight(partner) if partner else _CROSS
        checked = [c for need, c in self.conditions if need & done == need and need != bit]
        checked += [c for key in self.keys if not key.ties(bit) for c in key.conditions(done)]
        return replace(on, residual=(*on.residual, *checked)) if checked else on

    def index(self, on: JoinCondition) -> StateSpec:
        """The state that a join condition probes."""
        return next(s for s in self.indexes if (s.index, s.key) == (on.index, on.right_key))

    @cached_property
    def _near(self) -> int:
        return sum(bit for bit, _ in self.partners)

    def _straight(self, partner: str) -> JoinCondition:
        if partner not in self._conditions:
            self._conditions[partner] = join_condition(self.query, frozenset({partner}), frozenset({self.label}))
        return self._conditions[partner]

    @cached_property
    def _conditions(self) -> dict[str, JoinCondition]:
        # Of a hundred sources a way meets few pairs, and to find a join condition takes longer than to probe by it.
        return {}


def compile_stems(binding: Binding, labels: Sequence[str]) -> tuple[Stem, ...]:
    """The SteMs of these sources; a bit of a bitmap is the place of its source among the labels."""
    bits = {label: 1 << place for place, label in enumerate(labels)}
    classes = key_classes(binding.query)
    stems = [_indexed(binding, _bare(binding, label, bits, classes), bits) for label in labels]
    crossed = _crossed(stems)
    scan = [binding.state((stem.label,), "scan") for stem in stems]
    return tuple(
        replace(stem, indexes=(*stem.indexes, rows)) if stem.scanned or stem.bit & crossed else stem
        for stem, rows in zip(stems, scan, strict=True)
    )


def _bare(binding: Binding, label: str, bits: Mapping[str, int], classes: Sequence[KeyClass]) -> Stem:
    query = binding.query
    keys = []
    for key_class in classes:
        own = key_class.within((label,))
        others = [(bits[alias], m) for m in key_class.members for alias in m.aliases() if alias != label]
        if own and others:
            keys.append(Key(key_class, own, tuple(others)))
    loose = [p for p in query.predicates if label in p.aliases() and not isinstance(p, EquiPredicate)]
    conditions = tuple((sum(bits[a] for a in p.aliases() - {label}), p.expression) for p in loose)
    return Stem(compile_source(binding, label), bits[label], query, tuple(keys), conditions, (), ())


def _indexed(binding: Binding, stem: Stem, bits: Mapping[str, int]) -> Stem:
    ways: dict[object, JoinCondition] = {}
    partners = []
    for other, bit in bits.items():
        shared = tuple(place for place, key in enumerate(stem.keys) if key.ties(bit))
        if not shared and all(need != bit for need, _ in stem.conditions):
            continue
        # Sources that share the same keys probe the same index.
        way = shared or other
        if way not in ways:
            ways[way] = join_condition(binding.query, frozenset({other}), frozenset({stem.label}))
        if ways[way].index != "scan":
            partners.append((_preference(ways[way]), other, bit))
    indexes = [binding.state((stem.label,), e.index, e.right_key) for e in ways.values() if e.index != "scan"]
    return replace(
        stem,
        partners=tuple((bit, other) for _, other, bit in sorted(partners)),
        indexes=tuple({spec.id: spec for spec in indexes}.values()),
    )


def _preference(on: JoinCondition) -> tuple[int, float]:
    """Many keys before few, a narrow band before a wide one."""
    if on.index == "hash":
        return 0, -len(on.left_key)
    return 1, math.inf if on.low is None or on.high is None else on.high - on.low


def _crossed(stems: Sequence[Stem]) -> int:
    """Return the sources that some other source does not come to by ties alone."""
    crossed = 0
    for start in stems:
        done, before = start.bit, 0
        while done != before:
            before = done
            for stem in stems:
                if not stem.bit & done and stem.tied(done):
                    done |= stem.bit
        crossed |= sum(stem.bit for stem in stems) & ~done
    return crossed
