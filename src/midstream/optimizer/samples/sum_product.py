"""Joins of samples counted without being made, where the conditions form no circle (sum-product; Yannakakis' counting).

Sources and key classes are nodes of a tree: each source tells its keys how many rows it has, each key tells a source
how many combinations of the others meet it there. A subset of n sources costs n passes over their samples, however
many combinations there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from midstream.model.window import Clock
from midstream.optimizer.bounded import Bounded
from midstream.optimizer.samples.hashing import Words
from midstream.optimizer.samples.links import Link
from midstream.optimizer.samples.strata import Numbers, SampledKeys, SampledSource, Strata, sum_of_squares, sums


@dataclass(frozen=True)
class Network:
    """The samples of some sources, the classes that tie two of them or more, and the other conditions among them."""

    strata: Strata
    sources: frozenset[str]
    links: Sequence[Link]
    _sums: dict[tuple[str, str], Numbers] = field(default_factory=dict)

    @property
    def is_tree(self) -> bool:
        """Whether the conditions form no circle; they are assumed to tie all sources together."""
        ties = sum(len(keys.sources & self.sources) for keys in self.keys.values()) + 2 * len(self.links)
        return ties == len(self.sources) + len(self.keys) + len(self.links) - 1

    @cached_property
    def keys(self) -> Mapping[str, SampledKeys]:
        """The classes that have two sources or more here."""
        return {name: keys for name, keys in self.strata.keys.items() if len(keys.sources & self.sources) > 1}

    def size(self) -> Bounded:
        """Count the combinations, with the variance of keys and rows kept by chance to first order."""
        root = min(self.sources)
        sources = self.strata.sources
        per_row = {a: self._rows(a) for a in sorted(self.sources) if sources[a].varies or a == root}
        variance = 0.0
        for keys in self.strata.keys.values():
            inside = sorted(keys.sources & self.sources)
            if len(inside) > 1:
                per_key = self._per_key(keys.name)
                variance += sum_of_squares(per_key, keys.uncertain)
            elif inside and float(keys.factors.max()) > 1:
                source = sources[inside[0]]
                rows = per_row[inside[0]] if inside[0] in per_row else self._rows(inside[0])
                by_key = rows * (source.by_row[keys.name][0] == 1.0) if keys.name in source.by_row else rows
                variance += sum_of_squares(sums(source.places[keys.name], by_key, len(keys.factors)), keys.uncertain)
        variance += sum(sources[alias].variance(rows) for alias, rows in per_row.items() if sources[alias].varies)
        return Bounded.sampled(float(per_row[root].sum()), variance)

    def _per_key(self, name: str) -> Numbers:
        keys = self.strata.keys[name]
        found = keys.factors
        for alias in sorted(keys.sources & self.sources):
            found = found * self._sum(alias, name)
        return found

    def _sum(self, alias: str, name: str) -> Numbers:
        # Combinations of a source with what depends on its other conditions.
        at = (alias, name)
        if at not in self._sums:
            places = self.strata.sources[alias].places[name]
            counts = sums(places, self._rows(alias, without=name), len(self.strata.keys[name].factors))
            counts[-1] = 0.0  # NULL joins nothing.
            self._sums[at] = counts
        return self._sums[at]

    def _rows(self, alias: str, without: str | Link | None = None) -> Numbers:
        # Combinations that depend on each row, except those of one condition.
        source: SampledSource = self.strata.sources[alias]
        found = source.weighed(self.keys)
        for name, places in source.places.items():
            if name == without:
                continue
            keys = self.strata.keys[name]
            others = sorted((keys.sources & self.sources) - {alias})
            met = keys.factors
            for other in others:
                met = met * self._sum(other, name)
            found = found * met[places]
        for link in self.links:
            if link is not without and alias in link.sources:
                (other,) = link.sources - {alias}
                found = found * link.found_by(alias, self._rows(other, without=link))
        return found


@dataclass(frozen=True)
class Meetings:
    """Joins by one key class, of sources whose rows are all drawn: counted at moments, each of one key.

    Without windows each key is one moment. With them the events of a class are in order of key and time: `rows` has the
    place among `members` of the source whose row begins (`steps` 1) or has ended (-1). A moment is where a row begins,
    and a combination is counted where the last of its rows does.
    """

    members: Sequence[str]
    living: dict[str, Numbers]
    rows: Words
    steps: Numbers

    @staticmethod
    def of(strata: Strata, keys: SampledKeys, clock: Clock | None = None) -> Meetings:
        """Count the rows of a class; of windows those of a clock matter, if any do."""
        members, null = sorted(keys.sources), len(keys.factors) - 1  # NULL joins nothing.
        sources = [strata.sources[alias] for alias in members]
        if clock is None:
            counts = [sums(one.places[keys.name], one.weights, null + 1)[:null] for one in sources]
            return Meetings(members, dict(zip(members, counts, strict=True)), np.zeros(0, np.int64), np.zeros(0))
        places = np.concatenate([source.places[keys.name] for source in sources])
        begins, ends = (
            np.concatenate([lives[clock] for lives in found])
            for found in ([source.valid_from for source in sources], [source.valid_to for source in sources])
        )
        some = np.flatnonzero((places < null) & (begins <= ends))
        # Begins come before ends of the same time: a row still meets those that begin as it ends.
        events = np.tile(places[some], 2), np.concatenate([begins[some], ends[some]]), np.repeat([0, 1], len(some))
        order = np.lexsort(events[::-1])
        rows = np.repeat(np.arange(len(sources)), [len(source.weights) for source in sources])
        return Meetings(members, {}, np.tile(rows[some], 2)[order], np.where(order < len(some), 1.0, -1.0))

    def size(self, sources: frozenset[str]) -> Bounded:
        """Count the combinations."""
        first, *others = sorted(sources)
        at, met = np.arange(len(self._living(first))), self._living(first)
        for alias in others:
            if not len(at):
                break
            met = met * self._living(alias)[at]
            some = met.nonzero()[0]
            at, met = at[some], met[some]
        if len(self._begun):
            met = met[np.array([alias in sources for alias in self.members])[self._begun[at]]]
        return Bounded.sampled(float(met.sum()), 0.0)

    @cached_property
    def _begins(self) -> Words:
        return np.flatnonzero(self.steps > 0)

    @cached_property
    def _begun(self) -> Words:
        return self.rows[self._begins]

    def _living(self, alias: str) -> Numbers:
        # The rows of a source by moment. Where a row of the source itself begins it stands for that one.
        if alias not in self.living:
            own = self.rows == self.members.index(alias)
            self.living[alias] = np.where(own[self._begins], 1.0, np.cumsum(self.steps * own)[self._begins])
        return self.living[alias]
