"""What an incomplete state holds of the rows from before it began (JISC §4.3-4.4).

Some states exist when a migration begins: whole ones, and incomplete ones of another JISC (JISC §4.5).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from midstream.migration.just_in_time.distinct_keys import Keys
from midstream.migration.just_in_time.probed_state import ProbedState
from midstream.model.errors import CheckpointError
from midstream.model.window import Clock
from midstream.operators.match import keyed
from midstream.runtime.lane import Lane
from midstream.state.combinations import Combinations, Words, concatenate
from midstream.state.join_state import JoinState
from midstream.state.keys import Codes
from midstream.state.specs import StateSpec


@dataclass(frozen=True)
class Attempts:
    """By column, named as a `KeyColumn` is, the keys of old rows not attempted yet; their numbers are §4.3's counters.

    Every combination with a row at or after `start` is in the state. One of old rows only is there if and only if its
    key in some of the columns is not left. `start` is None where it is that of the migration. Keeping what is left
    instead of what was attempted makes it shrink, and a key goes as its rows do.
    """

    start: Mapping[str, int] | None = None
    left: Mapping[str, Keys] = field(default_factory=dict)
    whole: bool = False

    def counter(self, column: str | None) -> int | None:
        """Count the keys left in the column that probes a state (§4.3); zero means complete, None no keys to count."""
        if self.whole:
            return 0
        return len(self.left[column]) if column is not None and column in self.left else None

    def attempted(self, column: str, codes: Codes) -> Attempts:
        """Remove keys of a column that were attempted."""
        return replace(self, left={**self.left, column: self.left[column].without(codes)})

    def alive(self, bounds: Mapping[Clock, int]) -> Attempts:
        """Remove the keys of which no row is alive."""
        return replace(self, left={column: keys.alive(bounds) for column, keys in self.left.items()})

    def to_batch(self, clocks: Iterable[Clock]) -> pa.RecordBatch:
        """Encode as an Arrow batch with `column`, `code` and `until:<clock>`; the rest is metadata."""
        keys = list(self.left.values())

        def joined(arrays: list[Words]) -> pa.Array:
            return pa.array(np.concatenate([np.zeros(0, np.int64), *arrays]))

        batch = pa.RecordBatch.from_pydict(
            {
                "column": joined([np.full(len(k), at) for at, k in enumerate(keys)]),
                "code": joined([k.codes.view(np.int64) for k in keys]),
                **{f"until:{clock}": joined([k.ends[clock] for k in keys]) for clock in clocks},
            }
        )
        floats = [column for column, k in self.left.items() if k.codes.dtype == np.float64]
        rest = {
            "columns": list(self.left), "floats": floats, "start": self.start and dict(self.start), "whole": self.whole,
        }  # fmt: skip
        return batch.replace_schema_metadata({"attempts": json.dumps(rest)})

    @staticmethod
    def from_batch(batch: pa.RecordBatch, clocks: Iterable[Clock]) -> Attempts:
        """Decode a batch that `to_batch` wrote."""
        rest = json.loads(batch.schema.metadata[b"attempts"])

        def words(name: str) -> Words:
            return np.asarray(batch.column(name).to_numpy(zero_copy_only=True))

        bounds = np.searchsorted(words("column"), np.arange(len(rest["columns"]) + 1))
        codes, ends = words("code"), {clock: words(f"until:{clock}") for clock in clocks}
        left = {}
        for at, column in enumerate(rest["columns"]):
            here = slice(int(bounds[at]), int(bounds[at + 1]))
            own = codes[here].view(np.float64) if column in rest["floats"] else codes[here]
            left[column] = Keys(own, {clock: e[here] for clock, e in ends.items()})
        return Attempts(rest["start"], left, rest["whole"])


def find_whole(probed: ProbedState, lane: Lane) -> bool:
    """Fill a state with what another plan holds, if there is one that lacks nothing (Definition 1)."""
    whole = replace(probed.spec, signature=probed.spec.signature.whole())
    try:
        if lane.holds(whole):
            lane.share(whole, probed.spec)
            return True
        content = lane.sibling(whole)
    except CheckpointError:
        return False
    if content is None:
        return False
    _fill(probed, content, lane)
    return True


def take_over(
    probed: ProbedState, older: ProbedState, attempts: Attempts, start: Mapping[str, int], lane: Lane
) -> Attempts | None:
    """Continue a state of a migration under way, over equal sources; None where that cannot be.

    It keeps its own start and its attempted keys, as §4.5 does with its mark; a state that is new and missing has the
    new start.
    """
    state = lane.join(older.spec)
    if _as_whole(probed.spec) == _as_whole(older.spec):
        lane.share(older.spec, probed.spec)
    elif not state.left_out:
        _fill(probed, [part.combinations for part in state.old], lane)
    else:
        return None
    return attempts if attempts.start is not None or attempts.whole else replace(attempts, start=dict(start))


def _as_whole(spec: StateSpec) -> str:
    return replace(spec, signature=spec.signature.whole()).id


def _fill(probed: ProbedState, content: list[Combinations], lane: Lane) -> None:
    parts = []
    if content:
        parts.append(keyed(lane, probed.operator.rows, concatenate(content), probed.spec.index, probed.spec.key))
    lane.put(JoinState(probed.spec, parts))
