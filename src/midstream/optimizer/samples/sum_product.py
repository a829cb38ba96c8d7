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
from midstream.optimizer.samples.drawn import Mask
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

    `living` has by source the rows that live then. Without windows each key is one moment. With them `begun` has the
    moments at which a source's rows begin: a combination is counted where the last of its rows does.
    """

    living: Mapping[str, Numbers]
    begun: Mapping[str, Mask] | None = None

    @staticmethod
    def of(strata: Strata, keys: SampledKeys, clock: Clock | None = None) -> Meetings:
        """Count the rows of a class; of windows those of a clock matter, if any do."""
        members, null = sorted(keys.sources), len(keys.factors) - 1  # NULL joins nothing.
        sources = [strata.sources[alias] for alias in members]
        if clock is None:
            counts = [sums(one.places[keys.name], one.weights, null + 1)[:null] for one in sources]
            return Meetings(dict(zip(members, counts, strict=True)))
        places = np.concatenate([source.places[keys.name] for source in sources])
        begins, ends = (
            np.concatenate([lives[clock] for lives in found])
            for found in ([source.valid_from for source in sources], [source.valid_to for source in sources])
        )
        some = np.flatnonzero((places < null) & (begins <= ends))
        # Begins come before ends of the same time: a row still meets those that begin as it ends.
        events = np.tile(places[some], 2), np.concatenate([begins[some], ends[some]]), np.repeat([0, 1], len(some))
        order = np.lexsort(events[::-1])
        rows = np.tile(np.repeat(np.arange(len(sources)), [len(s.weights) for s in sources])[some], 2)[order]
        steps, begin = np.where(order < len(some), 1.0, -1.0), np.flatnonzero(order < len(some))
        living, begun = dict[str, Numbers](), dict[str, Mask]()
        for at, alias in enumerate(members):
            begun[alias] = rows[begin] == at
            # Where a row of the source itself begins it stands for that one.
            living[alias] = np.where(begun[alias], 1.0, np.cumsum(np.where(rows == at, steps, 0.0))[begin])
        return Meetings(living, begun)

    def size(self, sources: frozenset[str]) -> Bounded:
        """Count the combinations."""
        first, *others = sorted(sources)
        met = self.living[first].copy()
        for alias in others:
            met *= self.living[alias]
        if self.begun is not None:
            met = met[np.logical_or.reduce([self.begun[alias] for alias in sources])]
        return Bounded.sampled(float(met.sum()), 0.0)
