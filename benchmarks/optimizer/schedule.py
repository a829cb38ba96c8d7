"""The best schedule of plans, by somebody who knows the future: what every kept plan really did in every step.

Of all ways to run some plan in each step the one of least work is found by dynamic programming. A move is reckoned at
what its new plan has done in the window before: that is what it takes to compute its states anew (Zhu's moving state
does just that). The schedule is then run, its moves by the strategy that suits best; what it is held to be is what that
run took, its moves included.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def best_schedule(work: Mapping[str, Sequence[float]], window: int) -> tuple[str, tuple[tuple[int, str], ...]]:
    """The first plan, and the steps at which another one follows; `window` is in steps.

    >>> best_schedule({"P": [1, 1, 1, 9, 9, 9], "Q": [9, 9, 9, 1, 1, 1]}, window=1)
    ('P', ((3, 'Q'),))
    >>> best_schedule({"P": [1, 1, 2, 1], "Q": [2, 2, 1, 2]}, window=1)
    ('P', ())
    """
    plans = list(work)
    done = np.array([work[plan] for plan in plans], float)
    price = np.stack([done[:, max(0, step - window) : step].sum(axis=1) for step in range(done.shape[1])], axis=1)
    least, came = done[:, 0], list[np.ndarray]()
    for step in range(1, done.shape[1]):
        moved = np.full(len(plans), int(least.argmin()))
        better = least.min() + price[:, step] < least
        came.append(np.where(better, moved, np.arange(len(plans))))
        least = np.where(better, least.min() + price[:, step], least) + done[:, step]
    run = [int(least.argmin())]
    for before in reversed(came):
        run.append(int(before[run[-1]]))
    run.reverse()
    changes = tuple((step, plans[run[step]]) for step in range(1, len(run)) if run[step] != run[step - 1])
    return plans[run[0]], changes
