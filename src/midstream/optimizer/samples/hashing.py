"""Hashes that decide which keys and which rows are sampled: pure functions of a seed, the same in every stream."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Words = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)
_AT_ONCE = 1 << 14  # words that stay in a core's cache while they are mixed


def salt(seed: int, *names: str) -> np.uint64:
    """Derive a word that makes hashes for one purpose independent of those for another."""
    text = "\0".join([str(seed), *names]).encode()
    return np.uint64(int.from_bytes(blake2b(text, digest_size=8).digest(), "little"))


def hashes(words: Words, salted: np.uint64) -> Hashes:
    """Hash each word to a uniform word (the finalizer of SplitMix64); equal words have equal hashes.

    >>> import numpy as np
    >>> found = hashes(np.arange(10_000), salt(0, "k"))
    >>> 0.48 < float(below(found, 0.5).mean()) < 0.52
    True
    >>> words = np.arange(40_000)
    >>> bool((hashes(words, salt(0, "k"))[39_990:] == hashes(words[39_990:], salt(0, "k"))).all())
    True
    """
    mixed = words.view(np.uint64) + salted
    shifted = np.empty(min(len(mixed), _AT_ONCE), np.uint64)
    for first in range(0, len(mixed), _AT_ONCE):
        some = mixed[first : first + _AT_ONCE]
        by = shifted[: len(some)]
        some ^= np.right_shift(some, _SHIFTS[0], out=by)
        some *= _FIRST
        some ^= np.right_shift(some, _SHIFTS[1], out=by)
        some *= _SECOND
        some ^= np.right_shift(some, _SHIFTS[2], out=by)
    return mixed


def below(found: Hashes, share: float) -> Mask:
    """Test which hashes lie under the threshold that lets this share of all through."""
    if share >= 1.0:
        return np.ones(len(found), np.bool_)
    return found < np.uint64(int(share * 2.0**64))
