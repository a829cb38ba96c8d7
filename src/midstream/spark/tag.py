"""The tag that travels with a row: one integer that says which lane group, stream and slot of the lane key it is for.

It is written by Spark in the JVM and read by numpy in the workers, so both forms stand here side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from midstream.runtime.lane_key import SLOTS
from midstream.spark.layout import STREAM

TAG = "_tag"
SLOT_BITS = SLOTS.bit_length() - 1

Words = npt.NDArray[np.signedinteger[Any]]


class Tags(NamedTuple):
    """The tags of some rows taken apart: by row the number of its group, the number of its stream, and its slot."""

    group: Words
    stream: Words
    slot: Words


@dataclass(frozen=True)
class TagFormat:
    """How many bits of a tag are the stream's; the slot's are below them, the group's above.

    >>> tags = TagFormat.of(streams=3)
    >>> tags.decode(tags.encode(Tags(*(np.array([n], np.int32) for n in (5, 2, 4095)))))
    Tags(group=array([5], dtype=int32), stream=array([2], dtype=int32), slot=array([4095], dtype=int32))
    """

    stream_bits: int

    @staticmethod
    def of(streams: int) -> TagFormat:
        """Choose the format for so many streams."""
        return TagFormat(max(streams - 1, 1).bit_length())

    def encode(self, tags: Tags) -> Words:
        """Encode the tags of rows."""
        return (((tags.group << self.stream_bits) + tags.stream) << SLOT_BITS) + tags.slot

    def decode(self, words: Words) -> Tags:
        """Decode what `encode`, or Spark by `sql`, made of tags."""
        above = words >> SLOT_BITS
        return Tags(above >> self.stream_bits, above & ((1 << self.stream_bits) - 1), words & (SLOTS - 1))

    def sql(self, group: int, slot: str) -> str:
        """Write in SQL the tag of a row of the union for a group. `slot` is the SQL of the row's slot."""
        return f"({group << (self.stream_bits + SLOT_BITS)} + {STREAM} * {SLOTS} + CAST({slot} AS INT))"

    @property
    def group_sql(self) -> str:
        """The group of a tag, in SQL."""
        return f"shiftright({TAG}, {self.stream_bits + SLOT_BITS})"


SLOT_SQL = f"{TAG} & {SLOTS - 1}"
"""The slot of a tag, in SQL."""
