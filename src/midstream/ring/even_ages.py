"""At which ages slices end so that every node of a ring compares equally many pairs (Wang §13.3, §13.4)."""

from __future__ import annotations

import numpy as np

GRID = 2048
"""So many ages of equal distance the work is summed up at."""


def even_ages(window: int, nodes: int, span: int) -> tuple[int, ...]:
    """Compute the ages, at the end of a step, at which all slices but the last end; rows come steadily.

    `span` is by how much event time goes on with a step, and the window is in microseconds as well. A step is one
    moment for all its rows. The first of them look for rows that are older by a step, at its end, than the window; and
    what two rows of a step have to do with each other is done once, by one of them, so that rows of the step are met
    half as often as older ones. Slices of equal length would give the tail half a step more than its share, and the
    head half a step less.

    Differs from §13.3, where each tuple is a moment of its own: without a span, slices are of equal length as there.

    >>> even_ages(80, nodes=4, span=0), even_ages(80, nodes=4, span=10)
    ((20, 40, 60), (25, 45, 65))
    """
    if window <= 0 or span <= 0:
        return tuple((np.arange(1, nodes) * window // nodes).tolist())
    ages = np.linspace(0, window + span, GRID + 1)
    probing = np.minimum(span, ages + window) - np.maximum(0, ages - window)
    met = np.where(ages < span, probing / 2, probing)
    # The middle of each piece stands for it: where the step ends, there is a leap.
    work = np.append(0.0, np.cumsum((met[1:] + met[:-1]) / 2))
    ends = np.interp(np.arange(1, nodes) / nodes * work[-1], work, ages)
    return tuple(np.rint(ends).astype(np.int64).tolist())
