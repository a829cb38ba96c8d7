"""XXH64 with seed 42 over columns: the very hash that Spark's `xxhash64` computes in the JVM.

In: words, or byte strings by their place in a buffer. Out: one int64 each. Rows are dealt to lanes by this hash on
every host, so it must equal the JVM's bit for bit; `tests/spark/test_dealing.py` compares them.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
_Unsigned = npt.NDArray[np.uint64]

SEED = 42
"""The seed of Spark's `xxhash64`, and its hash of NULL."""

_BLOCK = 1 << 14
"""So many words are hashed at a time: intermediate values stay in the processor's cache."""

_ONE, _TWO, _THREE, _FOUR, _FIVE = (
    np.uint64(prime)
    for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_SEED_OF_WORDS, _SEED_OF_BYTES = (np.uint64((SEED + int(_FIVE) + size) % 2**64) for size in (8, 0))
_SEEDS_OF_STRIPES = tuple(np.uint64((SEED + add) % 2**64) for add in (int(_ONE) + int(_TWO), int(_TWO), 0, -int(_ONE)))
_BITS_LEFT = {bits: (np.uint64(bits), np.uint64(64 - bits)) for bits in (1, 7, 11, 12, 18, 23, 27, 31)}
_27, _29, _31, _32, _33, _37 = (np.uint64(bits) for bits in (27, 29, 31, 32, 33, 37))


def hash_words(words: Words) -> Words:
    """Hash each word as Spark hashes a BIGINT.

    >>> hash_words(np.array([0, 7])).tolist()
    [-5252525462095825812, -2864211556195259663]
    """
    given = np.ascontiguousarray(words).view(np.uint64)
    if len(given) <= _BLOCK:
        return _finished(_with_word(_SEED_OF_WORDS, given)).view(np.int64)
    found = np.empty(len(words), np.uint64)
    for begin in range(0, len(given), _BLOCK):
        block = given[begin : begin + _BLOCK]
        found[begin : begin + _BLOCK] = _finished(_with_word(_SEED_OF_WORDS, block))
    return found.view(np.int64)


def hash_bytes(letters: npt.NDArray[np.uint8], starts: Words, lengths: Words) -> Words:
    """Hash byte strings as Spark hashes a STRING or BINARY; each begins at its start in `letters`.

    >>> hash_bytes(np.frombuffer(b"Spark", np.uint8), np.array([0, 0]), np.array([5, 0])).tolist()
    [-4294468057691064905, -7444071767201028348]
    """
    at, left = starts.astype(np.int64), lengths & 31
    # Words that begin at any byte, on the memory of the letters.
    longs = np.ndarray(max(len(letters) - 7, 0), "<u8", letters, strides=(1,))
    found = np.full(len(starts), _SEED_OF_BYTES)
    long = np.flatnonzero(lengths >= 32)
    if len(long):
        found[long] = _stripes(longs, at[long], lengths[long] >> 5)
        at += lengths & ~31
    found += lengths.astype(np.uint64)
    for word in range(int(left.max(initial=0)) >> 3):
        rows = np.flatnonzero(left >= 8 * (word + 1))
        found[rows] = _with_word(found[rows], longs[at[rows] + 8 * word])
    at += left & ~7
    rows = np.flatnonzero(left & 4)
    if len(rows):
        ints = np.ndarray(len(letters) - 3, "<u4", letters, strides=(1,))
        found[rows] = _rotated(found[rows] ^ ints[at[rows]].astype(np.uint64) * _ONE, 23) * _TWO + _THREE
        at[rows] += 4
    left &= 3
    for byte in range(int(left.max(initial=0))):
        rows = np.flatnonzero(left > byte)
        found[rows] = _rotated(found[rows] ^ letters[at[rows] + byte].astype(np.uint64) * _FIVE, 11) * _ONE
    return _finished(found).view(np.int64)


def _stripes(longs: _Unsigned, at: Words, counts: Words) -> _Unsigned:
    sums = [np.full(len(at), seed) for seed in _SEEDS_OF_STRIPES]
    for stripe in range(int(counts.max())):
        rows = np.flatnonzero(counts > stripe)
        for number, one in enumerate(sums):
            one[rows] = _round(one[rows], longs[at[rows] + 32 * stripe + 8 * number])
    first, second, third, fourth = sums
    found = _rotated(first, 1) + _rotated(second, 7) + _rotated(third, 12) + _rotated(fourth, 18)
    for one in sums:
        found = (found ^ _round(np.zeros_like(one), one)) * _ONE + _FOUR
    return found


def _round(sums: _Unsigned, words: _Unsigned) -> _Unsigned:
    return _rotated(sums + words * _TWO, 31) * _ONE


def _with_word(found: _Unsigned | np.uint64, words: _Unsigned) -> _Unsigned:
    mixed = words * _TWO
    mixed = mixed << _31 | mixed >> _33
    mixed *= _ONE
    mixed ^= found
    mixed = mixed << _27 | mixed >> _37
    mixed *= _ONE
    mixed += _FOUR
    return mixed


def _finished(found: _Unsigned) -> _Unsigned:
    found ^= found >> _33
    found *= _TWO
    found ^= found >> _29
    found *= _THREE
    found ^= found >> _32
    return found


def _rotated(words: _Unsigned, bits: int) -> _Unsigned:
    left, right = _BITS_LEFT[bits]
    return words << left | words >> right
