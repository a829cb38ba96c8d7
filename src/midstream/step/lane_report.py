"""What the lanes of a partition report to the driver, as JSON values: small, because the driver reads all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.model.codec import decode, encode
from midstream.model.counters import Counters
from midstream.model.events import Event
from midstream.model.ids import LaneId, OperatorId
from midstream.model.manifest import KeepsLanes, LaneState
from midstream.state.chunk_store import files_of_lane
from midstream.units.lane_step import LaneOutput

Reported = dict[str, Any]
"""`operators` and `files` that the lanes name by number, the `uses` of their units, of which lanes have few, and
`lanes`.
"""


def encode_lanes(outputs: Mapping[LaneId, LaneOutput]) -> Reported:
    """Encode the outputs of lanes; their results are left out.

    >>> done = {LaneId("key-0", 7): LaneOutput(LaneState(), {}, {OperatorId("source", "A"): Counters(rows_in=3)}, {})}
    >>> encode_lanes(done)["lanes"]
    {'key-0.7': {'state': {}, 'uses': 0, 'did': [[0, 3]]}}
    >>> decode_lanes(encode_lanes(done)) == done
    True
    """
    operators, files, uses = dict[str, int](), dict[str, int](), dict[str, tuple[int, Any]]()
    lanes = {}
    for lane, output in outputs.items():
        own = {unit: [_number(operators, one) for one in used] for unit, used in output.uses.items()}
        lanes[str(lane)] = found = {
            "state": output.state.to_json(),
            "uses": uses.setdefault(repr(own), (len(uses), own))[0],
            "did": [[_number(operators, one), *_values(did)] for one, did in output.counters.items()],
        }
        if output.state.part is not None:
            found["files"] = [_number(files, one) for one in files_of_lane(output.state)]
        rest = {
            "rows_out": {query: rows for query, rows in output.rows_out.items() if rows},
            "rejected": dict(output.rejected),
            "migrations": {unit: dict(did) for unit, did in output.migrations.items() if did},
            "events": [encode(event) for event in output.events],
        }
        found |= {name: value for name, value in rest.items() if value}
    return {"operators": [*operators], "files": [*files], "uses": [own for _, own in uses.values()], "lanes": lanes}


def decode_lanes(reported: Reported, store: KeepsLanes | None = None) -> dict[LaneId, LaneOutput]:
    """Decode what `encode_lanes` wrote; the parts of lanes are in the `store`."""
    operators, files = [OperatorId.parse(one) for one in reported["operators"]], reported["files"]
    uses = [
        {unit: tuple([operators[number] for number in used]) for unit, used in own.items()} for own in reported["uses"]
    ]
    found = {}
    for lane, one in reported["lanes"].items():
        state: LaneState = LaneState.from_json(one["state"])
        if state.part is not None:
            state = LaneState.unread(state.part, store, [files[number] for number in one["files"]])
        found[LaneId.parse(lane)] = LaneOutput(
            state,
            {},
            {operators[did[0]]: Counters.of(did[1:]) for did in one["did"]},
            uses[one["uses"]],
            one.get("migrations", {}),
            tuple([decode(Event, event) for event in one.get("events", ())]),
            one.get("rows_out", {}),
            one.get("rejected", {}),
        )
    return found


def _number(known: dict[str, int], name: str) -> int:
    return known.setdefault(name, len(known))


def _values(counters: Counters) -> list[int]:
    # Without the zeros at the end.
    values = list(counters.values)
    while values and not values[-1]:
        values.pop()
    return values
