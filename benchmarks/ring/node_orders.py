"""What probing orders per node could save (Wang §12.2): `python -m benchmarks.ring.node_orders`.

Rows of A visit B first, at every node. The partial results that a node finds could then visit C and D in an order of
its own. How many rows of C and D match depends on the row of B: at first few of C and many of D, and after `change`
seconds the other way round, again and again. Prints the pairs compared after the first hop with one order for all
nodes, over those with the best order of each node: where the one order never changes, and where it is chosen anew in
each second, as `engine.migrate` could, which moves no state.
"""

from __future__ import annotations

import numpy as np

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


def main() -> None:
    """Print a line for each pace of change."""
    for change in CHANGES:
        for_ever, each_second, each_node = np.mean([compared(change, seed) for seed in range(3)], axis=0)
        when = "no change" if change is None else f"a change every {change / WINDOW:g} windows"
        print(f"{when}: one order {for_ever / each_node:.2f}, one in each second {each_second / each_node:.2f}")


if __name__ == "__main__":
    main()
