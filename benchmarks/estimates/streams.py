"""Six streams of keys that are uniform, skewed, few, or correlated with one another and with time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

NAMES = "ABCDEF"
SKEW = 1.1
SPAN = 9_000_000
"""Microseconds of stream time that the rows cover, within every window."""

Words = npt.NDArray[np.int64]
Rows = Mapping[str, npt.NDArray[np.int64] | npt.NDArray[np.float64]]
Random = np.random.Generator


def zipf(random: Random, rows: int, skew: float = SKEW) -> Words:
    """Keys whose frequency falls with their rank to the power of the skew, as many keys as rows."""
    shares = 1 / np.arange(1, rows + 1) ** skew
    return random.choice(rows, rows, p=shares / shares.sum()).astype(np.int64)


def _uniform(random: Random, rows: int, stream: int) -> Rows:
    return _columns(random, random.integers(0, rows // 2, rows), random.integers(0, rows // 2, rows))


def _few(random: Random, rows: int, stream: int) -> Rows:
    return _columns(random, random.integers(0, 200, rows), random.integers(0, 200, rows))


def _zipf(random: Random, rows: int, stream: int) -> Rows:
    return _columns(random, zipf(random, rows), zipf(random, rows))


def _correlated(random: Random, rows: int, stream: int) -> Rows:
    """Skewed keys that overlap less the further streams are apart; the second key and the number follow the first."""
    first = zipf(random, rows, 0.6) + stream * rows // 20
    second = first // 3 + random.integers(0, 2, rows)
    return {"k": first, "m": second, "x": 3 * first / rows + random.normal(0, 0.1, rows)}


def _columns(random: Random, first: Words, second: Words) -> Rows:
    return {"k": first, "m": second, "x": random.normal(0, 1, len(first))}


KINDS: Mapping[str, Callable[[Random, int, int], Rows]] = {
    "uniform": _uniform,
    "few keys": _few,
    "zipf 1.1": _zipf,
    "correlated": _correlated,
}


def streams(kind: str, rows: int, seed: int) -> dict[str, Rows]:
    """All streams with so many rows each; the last rows of all come at one time."""
    random = np.random.default_rng(seed)
    found: dict[str, Rows] = {}
    for at, name in enumerate(NAMES):
        times = np.sort(random.integers(0, SPAN, rows))
        times[-1] = SPAN
        found[name] = {"ts": times, **KINDS[kind](random, rows, at)}
    return found
