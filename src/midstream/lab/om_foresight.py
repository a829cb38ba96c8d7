"""How well a round of OM's experiments can be foreseen: by what was observed, and by whoever knows all before.

Fidelity asks for the plan that is the best one for the round to come. OM's estimate (§4.3) is a mean of rounds that are
over, and so lags behind a rate that rises or falls. Ours goes straight on from the last two rounds where that has erred
less. What is drawn anew in each round nobody foresees: that bounds the fidelity of every policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

STEEPEST = 2.0
"""By no more than this factor a round is expected to differ from the last one."""


def foreseen(observed: Numbers, means: Numbers) -> Numbers:
    """Estimate each row of observations from those before it: the mean, or straight on from the last two.

    Each column by itself takes the one of the two whose errors so far, all rounds before together, are smaller.

    >>> means = np.array([[10.0], [10.0], [11.0], [12.5], [14.0]])
    >>> foreseen(np.array([[10.0], [12.0], [14.0], [16.0], [18.0]]), means).ravel().tolist()
    [10.0, 10.0, 11.0, 16.0, 18.0]
    >>> foreseen(np.array([[10.0], [12.0], [10.0], [12.0], [10.0]]), np.full((5, 1), 11.0)).ravel().tolist()
    [11.0, 10.0, 11.0, 11.0, 11.0]
    """
    last = _before(observed)
    ahead = np.clip(2 * last - _before(last), last / STEEPEST, last * STEEPEST)
    found: Numbers = np.where(_erred(ahead, observed) < _erred(means, observed), ahead, means)
    return found


def surest(drawn: Iterable[Numbers], best: Callable[[Numbers], npt.NDArray[np.intp]], plans: int) -> list[int]:
    """Choose for each round the plan that is most often the best, over drawings of the rounds.

    >>> surest([np.array([1.0, 8.0]), np.array([2.0, 9.0]), np.array([7.0, 1.0])], lambda x: (x > 5).astype(int), 2)
    [0, 1]
    """
    chosen = np.stack([best(points) for points in drawn])
    votes = np.stack([(chosen == plan).sum(axis=0) for plan in range(plans)])
    found: list[int] = votes.argmax(axis=0).tolist()
    return found


def _before(values: Numbers) -> Numbers:
    # The first row stays.
    return np.concatenate([values[:1], values[:-1]])


def _erred(estimated: Numbers, observed: Numbers) -> Numbers:
    # The errors of all rounds before, together.
    errors = np.abs(estimated - observed).cumsum(axis=0)
    return np.concatenate([np.zeros_like(errors[:1]), errors[:-1]])
