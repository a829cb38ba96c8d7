"""Eight streams in a chain; the wide end becomes the narrow one."""

from __future__ import annotations

from benchmarks.optimizer.scenario import Scenario, turns
from benchmarks.plan_change.scenario import Feed, Profile, always

NAMES = "ABCDEFGH"
WIDE_AT_FIRST, WIDE_LATER = turns((0, 1.0), (15, 0.3)), turns((0, 0.3), (15, 1.0))


def share(place: int) -> Profile:
    """The share of rows that find partners by the key between a stream and its neighbour."""
    return WIDE_AT_FIRST if place < 2 else WIDE_LATER if place > 4 else always(0.6)


def feed(place: int) -> Feed:
    """A stream with a key in common with each neighbour."""
    keys = {f"k{near}": {"all": share(near)} for near in (place - 1, place) if 0 <= near < len(NAMES) - 1}
    return Feed(always(0.5), keys)


EIGHT_STREAMS = Scenario(
    name="eight_streams",
    title="along a chain of eight streams the joins of one end are wide, from the middle on those of the other",
    kind="drifting",
    feeds={name: feed(place) for place, name in enumerate(NAMES)},
    regions={"all": 5.0},
    where=" AND ".join(f"{NAMES[n]}.k{n} = {NAMES[n + 1]}.k{n}" for n in range(len(NAMES) - 1)),
    looks=(4.0, 19.0),
    length=30.0,
    scale=0.5,
    seed=12,
)
