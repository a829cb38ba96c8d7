"""Random deployments, rows and partial results: small, from one seed, with every tie that time can have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.slice_table import SliceTable

SPAN = 60
"""Event times of a case lie below this; windows are shorter."""

MOST_PARTIALS = 40


@dataclass(frozen=True)
class Case:
    """A join of some streams, what has come of each, and the probing order of each."""

    deployment: Deployment
    rows: dict[str, StreamRows]
    orders: tuple[tuple[str, ...], ...]

    def joins(self, partials: Partials, label: str) -> npt.NDArray[np.bool_]:
        """Which partial results (down) and rows of a stream (across) belong together, by the definition of a result."""
        rows = self.rows[label]
        ts = {**{other: found[:, None] for other, found in partials.ts.items()}, label: rows.ts[None, :]}
        newest = np.maximum.reduce(list(np.broadcast_arrays(*ts.values())))
        found = np.ones(newest.shape, np.bool_)
        for other, times in ts.items():
            found &= newest - times <= self.deployment.windows[other]
        for key in partials.keys.keys() & rows.keys.keys():
            found &= partials.keys[key][:, None] == rows.keys[key][None, :]
        return found

    def partials(self, order: Sequence[str], rng: np.random.Generator) -> Iterator[tuple[Partials, str]]:
        """The partial results along an order, each with the stream it visits next; a part of them if many."""
        start = self.rows[order[0]]
        moments = rng.choice(self.deployment.moments, len(start))
        partials = Partials({order[0]: start.ts}, start.keys, moments)
        for label in order[1:]:
            if len(partials) > MOST_PARTIALS:
                partials = taken(partials, np.sort(rng.choice(len(partials), MOST_PARTIALS, replace=False)))
            yield partials, label
            left, right = np.nonzero(self.joins(partials, label))
            found, rows = taken(partials, left), self.rows[label]
            ts = {**found.ts, label: rows.ts[right]}
            keys = {**{key: codes[right] for key, codes in rows.keys.items()}, **found.keys}
            partials = Partials(ts, keys, found.moment)


def taken(partials: Partials, at: Words) -> Partials:
    return Partials(
        {label: ts[at] for label, ts in partials.ts.items()},
        {key: codes[at] for key, codes in partials.keys.items()},
        partials.moment[at],
    )


def draw(seed: int, *, one_key: bool, master_first: bool, nodes: int | None = None) -> Case:
    """A case, over `nodes` or a random number; with `one_key` all streams have one key class in common, or else classes
    at random.
    """
    rng = np.random.default_rng(seed)
    labels = "ABCD"[: rng.integers(2, 5)]
    nodes = int(rng.integers(1, 7)) if nodes is None else nodes
    windows = {label: int(rng.integers(0, 40)) for label in labels}
    master = str(rng.choice(list(labels)))
    classes = {label: ["k"] if one_key else [key for key in "kg" if rng.random() < 0.6] for label in labels}
    rows, tables, rings = {}, {}, {}
    for label in labels:
        ts = rng.integers(-5, SPAN, rng.integers(0, 13)).astype(np.int64)
        rows[label] = StreamRows(ts, {key: rng.integers(0, 2, len(ts)) for key in classes[label]})
        if rng.random() < 0.5:
            # Half of them have fewer nodes than there are (Wang §13.3).
            length = nodes if rng.random() < 0.5 else int(rng.integers(1, nodes + 1))
            rings[label] = tuple(map(int, rng.permutation(nodes)[:length]))
        tables[label] = grown_table(rng, ts, windows[label], nodes, rings.get(label, ()))
    deployment = Deployment(
        windows,
        nodes,
        moments=tuple(sorted(int(moment) for moment in rng.integers(SPAN // 2, SPAN + 5, rng.integers(1, 4)))),
        placed_by={label: str(rng.choice(keys)) for label, keys in classes.items() if keys},
        ages={label: tuple(sorted(map(int, rng.integers(0, 30, len(rings.get(label, range(nodes))) - 1))))
              for label in labels if rng.random() < 0.3},
        rings=rings,
        tables=tables,
        master=master,
        segment=max(1, *windows.values()) + int(rng.integers(0, 20)),
        copies=int(rng.integers(1, nodes + 1)),
        seed=seed,
    )  # fmt: skip
    orders = [(label, *map(str, rng.permutation([o for o in labels if o != label]))) for label in labels]
    if master_first:
        orders = [order if order[0] == master else
                  (order[0], master, *(o for o in order[1:] if o != master)) for order in orders]  # fmt: skip
    return Case(deployment, rows, tuple(orders))


def grown_table(rng: np.random.Generator, ts: Words, window: int, nodes: int, ring: tuple[int, ...] = ()) -> SliceTable:
    """A table that has seen these rows come in two parts, in whatever order they stand."""
    ring = ring or tuple(range(nodes))
    table = SliceTable((int(rng.integers(0, SPAN)),), (int(rng.choice(ring)),))
    most = int(rng.integers(1, 4)) if rng.random() < 0.5 else None
    for part in np.array_split(ts, 2):
        table = table.grown(part, max(1, window // len(ring)), nodes, most, ring)
    return table


def meetings(visits: Visits, copies: Copies, rows: StreamRows, partials: int) -> npt.NDArray[np.int64]:
    """How often each partial result (down) meets each row (across) at the nodes it visits."""
    times = rows.ts[copies.row][None, :]
    met = visits.node[:, None] == copies.node[None, :]
    met &= (visits.low[:, None] <= times) & (times <= visits.high[:, None])
    count = np.zeros((partials, len(rows)), np.int64)
    visit, copy = np.nonzero(met)
    np.add.at(count, (visits.partial[visit], copies.row[copy]), 1)
    return count
