"""The real spreadings over generated streams, step by step: what they keep, compare and send (Wang §15.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.slice_table import SliceTable
from midstream.ring.spreading import Spreading

Pairs = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class SpreadStreams:
    """A star of streams: the first matches each other one, by `matches` (its rows down); times in microseconds.

    Where they match by equal keys, `keys` has the codes of each stream's key classes.
    """

    times: Mapping[str, Words]
    matches: Mapping[str, Pairs]
    window: int
    step: int
    keys: Mapping[str, Mapping[str, Words]] = field(default_factory=dict)

    @staticmethod
    def drawn(labels: str, rows: int, selectivity: float, window: int, steps: int, seed: int) -> SpreadStreams:
        """Draw `rows` rows of each stream in a window, for `steps` steps of a tenth of a window."""
        return SpreadStreams.paced(labels, [(rows, steps)], selectivity, window, seed)

    @staticmethod
    def paced(
        labels: str, paces: Sequence[tuple[int, int]], selectivity: float, window: int, seed: int
    ) -> SpreadStreams:
        """Draw rows at a changing rate: each pace is rows in a window, and for how many steps."""
        rng = np.random.default_rng(seed)
        step = window // 10
        begins = np.cumsum([0, *(steps for _, steps in paces)]) * step
        times = {
            label: np.concatenate(
                [
                    np.sort(rng.integers(begin, begin + step * steps, rows * steps // 10))
                    for begin, (rows, steps) in zip(begins.tolist(), paces, strict=False)
                ]
            )
            for label in labels
        }
        count = sum(rows * steps // 10 for rows, steps in paces)
        return SpreadStreams(
            times, {label: rng.random((count, count)) < selectivity for label in labels[1:]}, window, step
        )

    @staticmethod
    def keyed(classes: Mapping[str, str], rows: int, domain: int, window: int, steps: int, seed: int) -> SpreadStreams:
        """Draw streams that match the first by equal keys of each other stream's class, with `domain` values."""
        first, *others = classes
        drawn = SpreadStreams.drawn("".join(classes), rows, 0.0, window, steps, seed)
        rng = np.random.default_rng(seed)
        keys = {
            label: {key: rng.integers(0, domain, len(drawn.times[label])) for key in dict.fromkeys(found)}
            for label, found in classes.items()
        }
        matches = {
            label: keys[first][classes[label]][:, None] == keys[label][classes[label]][None, :] for label in others
        }
        return replace(drawn, matches=matches, keys=keys)

    def rows(self, label: str, numbers: Words) -> StreamRows:
        """Select rows of a stream by number."""
        keys = {key: codes[numbers] for key, codes in self.keys.get(label, {}).items()}
        return StreamRows(self.times[label][numbers], keys)

    def partials(self, numbers: Mapping[str, Words], moment: int) -> Partials:
        """Build partial results from the numbers of their rows in each stream."""
        found = {label: self.rows(label, here) for label, here in numbers.items()}
        count = len(next(iter(numbers.values())))
        keys = {key: codes for rows in found.values() for key, codes in rows.keys.items()}
        return Partials({label: rows.ts for label, rows in found.items()}, keys, np.full(count, moment))

    def order(self, label: str) -> list[str]:
        """List the other streams, the first stream first."""
        return [other for other in self.times if other != label]

    def matching(self, partials: Mapping[str, Words], label: str, rows: Words) -> Pairs:
        """Test which partial results (down) match which rows (across)."""
        first = next(iter(self.times))
        if label == first:
            (other,) = partials
            return self.matches[other][np.ix_(rows, partials[other])].T
        return self.matches[label][np.ix_(partials[first], rows)]


@dataclass
class SpreadCounts:
    """What a spreading did.

    `copies` and `busiest` are means over steps: copies of a row, and the busiest node's pairs compared over the mean
    node's; `course` has the latter step by step. `twice` are the pairs that meet more than once where the bounds of
    visits do not forbid it.
    """

    copies: float = 0.0
    busiest: float = 0.0
    compared: int = 0
    sent: int = 0
    twice: int = 0
    results: int = 0
    course: list[float] = field(default_factory=list)


class _Run:
    """One spreading over the streams; nodes compare a partial result with every row of the stream that they keep."""

    def __init__(self, spreading: Spreading, streams: SpreadStreams, deployment: Deployment, most: int | None) -> None:
        self.spreading, self.streams, self.deployment, self.most = spreading, streams, deployment, most
        self.counts = SpreadCounts()
        self.kept: dict[str, set[tuple[int, int]]] = {label: set() for label in streams.times}
        self.work = np.zeros(deployment.nodes, np.int64)

    def step(self, begin: int) -> tuple[float, float]:
        # Returns the step's copies of a row, and its busiest node over the mean.
        times, end = self.streams.times, begin + self.streams.step
        old = {label: np.flatnonzero((ts >= begin - self.streams.window) & (ts < begin)) for label, ts in times.items()}
        new = {label: np.flatnonzero((ts >= begin) & (ts < end)) for label, ts in times.items()}
        tables = {
            label: table.grown(times[label][new[label]], self.streams.window // self.deployment.nodes,
                               self.deployment.nodes, self.most)
            for label, table in self.deployment.tables.items()
        }  # fmt: skip
        self.deployment = replace(self.deployment, moments=(begin, end), tables=tables)
        held = sum(self._keep(label, np.append(old[label], new[label])) for label in times)
        self.work[:] = 0
        met: dict[str, Words] = dict(old)
        for label in times:
            self._follow(label, new[label], met)
            met[label] = np.append(old[label], new[label])
        rows = sum(len(old[label]) + len(new[label]) for label in times)
        return held / rows, float(self.work.max() / self.work.mean()) if self.work.any() else 1.0

    def _keep(self, label: str, rows: Words) -> int:
        copies = self._home(label, rows)
        kept = set(zip(rows[copies.row].tolist(), copies.node.tolist(), strict=True))
        self.counts.sent += len(kept - self.kept[label])
        self.kept[label] = kept
        return len(kept)

    def _home(self, label: str, rows: Words) -> Copies:
        return self.spreading.home(self.deployment, label, self.streams.rows(label, rows))

    def _follow(self, start: str, rows: Words, met: Mapping[str, Words]) -> None:
        homes = self._home(start, rows)
        partials, own, count = {start: rows}, homes.row * self.deployment.nodes + homes.node, len(rows)
        for label in self.streams.order(start):
            if not count:
                return
            here = met[label]
            found = self.streams.partials(partials, self.deployment.moments[-1])
            visits = self.spreading.visit(self.deployment, found, label)
            copies = self._home(label, here)
            together = visits.node[:, None] == copies.node[None, :]
            self._count(visits, together, own, copies, len(here))
            times = self.streams.times[label][here][copies.row][None, :]
            together &= (visits.low[:, None] <= times) & (times <= visits.high[:, None])
            together &= self.streams.matching(partials, label, here)[visits.partial[:, None], copies.row[None, :]]
            visit, copy = np.nonzero(together)
            partials = {other: numbers[visits.partial[visit]] for other, numbers in partials.items()}
            partials[label] = here[copies.row[copy]]
            count = len(visit)
            own = np.arange(count) * self.deployment.nodes + visits.node[visit]
        self.counts.results += count

    def _count(self, visits: Visits, together: Pairs, own: Words, copies: Copies, rows: int) -> None:
        # `own` are the nodes where partial results are already, as the visits are numbered here.
        visited, once = np.unique(visits.partial * self.deployment.nodes + visits.node, return_index=True)
        pairs = together[once].sum(axis=1)
        np.add.at(self.work, visits.node[once], pairs)
        self.counts.compared += int(pairs.sum())
        self.counts.sent += int((~np.isin(visited, own)).sum())
        visit, copy = np.nonzero(together[once])
        _, often = np.unique(visits.partial[once][visit] * max(rows, 1) + copies.row[copy], return_counts=True)
        self.counts.twice += int((often > 1).sum())


def spread(
    spreading: Spreading, streams: SpreadStreams, deployment: Deployment, steps: int, most: int | None = None
) -> SpreadCounts:
    """Run a spreading for `steps` steps; means and sums leave out the first ten steps, a window.

    Slices of rows that stay where they came have at most `most` of them (§14.1). A row is sent to every node that comes
    to keep it, a partial result to every node it visits but its own.
    """
    tables = {label: SliceTable((0,), (0,)) for label in streams.times}
    run = _Run(spreading, streams, replace(deployment, tables=tables), most)
    means = []
    for number in range(steps):
        if number == 10:
            run.counts = SpreadCounts()
        measured = run.step(number * streams.step)
        if number >= 10:
            means.append(measured)
    run.counts.copies, run.counts.busiest = (float(mean) for mean in np.mean(means, axis=0))
    run.counts.course = [busiest for _, busiest in means]
    return run.counts
