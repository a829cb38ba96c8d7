"""What probing orders per node could save (Wang §12.2): `python -m benchmarks.ring.node_orders`.

Rows of A visit B first, at every node. The partial results that a node finds could then visit C and D in an order of
its own. How many rows of C and D match depends on the row of B: at first few of C and many of D, and after `change`
seconds the other way round, again and again. Prints the pairs compared after the first hop with one order for all
nodes, over those with the best order of each node: where the one order never changes, and where it is chosen anew in
each second, as `engine.migrate` could, which moves no state.

Then the shares of C and D drift at random, each by itself, and an order goes by what was counted in the second before.
Prints the part of the whole work, the first hop included, that an order per node saves over one for all nodes: where
matches depend on the row of B alone, or half on the row of A, and where a key leaves only matches to compare.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

NODES, WINDOW, RATE, SECONDS = 4, 16.0, 10, 64
FEW, MANY = 0.05, 0.3
"""The shares of rows that match."""

CHANGES = (None, 32.0, 16.0, 8.0, 4.0, 2.0)


def compared(change: float | None, seed: int) -> tuple[float, float, float]:
    """Return the pairs compared with one order for ever, with one for each second, and with one for each node too."""
    random = np.random.default_rng(seed)
    times = {name: np.sort(random.uniform(0, SECONDS, RATE * SECONDS)) for name in "ABCD"}
    rows = [time for time in times["A"] if time >= WINDOW]
    costs = np.zeros((len(rows), NODES, 2))
    for place, now in enumerate(rows):
        b, c, d = (ts[(now - WINDOW <= ts) & (ts <= now)] for ts in (times[name] for name in "BCD"))
        first = np.zeros(len(b), np.bool_) if change is None else (b // change) % 2 == 1
        of_c, of_d = np.where(first, MANY, FEW), np.where(first, FEW, MANY)
        orders = len(c) * (1 + of_c * len(d)), len(d) * (1 + of_d * len(c))
        node = np.minimum((now - b) / WINDOW * NODES, NODES - 1).astype(np.int64)
        for order, pairs in enumerate(orders):
            costs[place, :, order] = np.bincount(node, pairs, NODES)
    by_second = [costs[np.floor(rows) == second] for second in np.unique(np.floor(rows))]
    return (
        float(costs.sum((0, 1)).min()),
        float(sum(one.sum((0, 1)).min() for one in by_second)),
        float(sum(one.sum(0).min(1).sum() for one in by_second)),
    )


SHARE = 0.1
"""The share of the rows of B that match, where shares drift."""

PACES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""After so many seconds a share has forgotten what it was."""

TICKS = 4
"""A share changes so many times a second."""

Floats = npt.NDArray[np.float64]


def drifting(pace: float, random: np.random.Generator) -> Floats:
    """Draw the logarithms of a share that drifts between 2 and 50 %, an Ornstein-Uhlenbeck process bent into them."""
    kept, drawn = np.exp(-1 / TICKS / pace), random.normal(size=SECONDS * TICKS + 1)
    for at in range(1, len(drawn)):
        drawn[at] = kept * drawn[at - 1] + np.sqrt(1 - kept**2) * drawn[at]
    middle, half = np.log(0.02 * 0.5) / 2, np.log(0.5 / 0.02) / 2
    return np.asarray(middle + half * np.tanh(drawn))


def saved(pace: float, seed: int, by_b: float, *, keyed: bool) -> tuple[float, float]:
    """Return the pairs compared with one order for all nodes, and with one for each."""
    random = np.random.default_rng(seed)
    times = {name: np.sort(random.uniform(0, SECONDS, RATE * SECONDS)) for name in "ABCD"}
    shares = {name: drifting(pace, random) for name in "CD"}
    rows = times["A"][times["A"] >= WINDOW]
    second = np.floor(rows - WINDOW).astype(np.int64)
    costs, first = np.zeros((second.max() + 1, NODES, 2)), 0.0
    for now, at in zip(rows, second, strict=True):
        b, c, d = (ts[(now - WINDOW <= ts) & (ts <= now)] for ts in (times[name] for name in "BCD"))
        of_c, of_d = (
            np.exp(by_b * drift[(b * TICKS).astype(int)] + (1 - by_b) * drift[int(now * TICKS)]) * len(ts)
            for drift, ts in ((shares["C"], c), (shares["D"], d))
        )
        if keyed:
            pairs, first = (of_c + of_c * of_d, of_d + of_c * of_d), first + SHARE * len(b) * (at > 0)
        else:
            pairs, first = (len(c) + of_c * len(d), len(d) + of_d * len(c)), first + len(b) * (at > 0)
        node = np.minimum((now - b) / WINDOW * NODES, NODES - 1).astype(np.int64)
        for order, each in enumerate(pairs):
            costs[at, :, order] += SHARE * np.bincount(node, each, NODES)
    together = costs.sum(1)
    one = np.take_along_axis(together[1:], together[:-1].argmin(1)[:, None], 1)
    own = np.take_along_axis(costs[1:], costs[:-1].argmin(2)[:, :, None], 2)
    return first + float(one.sum()), first + float(own.sum())


def main() -> None:
    """Print a line for each pace of change, and one for each kind of join with shares that drift."""
    for change in CHANGES:
        for_ever, each_second, each_node = np.mean([compared(change, seed) for seed in range(3)], axis=0)
        when = "no change" if change is None else f"a change every {change / WINDOW:g} windows"
        print(f"{when}: one order {for_ever / each_node:.2f}, one in each second {each_second / each_node:.2f}")
    print("saved by an order per node, of the whole work, " + ", ".join(f"{pace / WINDOW:g}" for pace in PACES) + " W:")
    for keyed in (False, True):
        for by_b in (1.0, 0.5):
            found = [np.sum([saved(pace, seed, by_b, keyed=keyed) for seed in range(6)], axis=0) for pace in PACES]
            join = f"{'a key' if keyed else 'no key'}, {by_b:.0%} by the row of B"
            print(f"{join}: " + ", ".join(f"{1 - own / one:.1%}" for one, own in found))


if __name__ == "__main__":
    main()
