import json

import pytest

from midstream.model.codec import decode, encode
from midstream.model.events import (
    ChainChanged,
    ChunksFetched,
    CommandRefused,
    CrossJoinBegun,
    Event,
    LanesProposalClosed,
    LanesRescaled,
    LanesReviewed,
    MigrationBegun,
    MigrationEnded,
    MigrationProgressed,
    OptimizerSet,
    PlanPinned,
    PlanReviewed,
    ProposalClosed,
    QueryAdded,
    QueryChanged,
    QueryDropped,
    QuerySpread,
    ResultsRejected,
    ReviewFailed,
    RowsLate,
    RowsRejected,
    SharingChanged,
    StateRebuilt,
    StepDelayed,
    StepDone,
    StopRequested,
    StreamAdded,
    StreamDropped,
    TableDropped,
    TableSet,
    TimesDoubtful,
)

EVENTS: tuple[Event, ...] = (
    StepDone(1, {"A": 2}, {"q": 3}, 4, 5, {"A": None}),
    RowsLate(1, "A", 2, 3),
    StopRequested(1),
    StepDelayed(1, "cannot write", 3),
    ChunksFetched(1, 9, 1, 4096),
    RowsRejected(1, "A", 2),
    TimesDoubtful(1, "A", "it went ahead"),
    ResultsRejected(1, "q", 2),
    QueryAdded(1, "q", "(A B)", 5_000_000, 25_000_000),
    CrossJoinBegun(1, "q", (("A", "B"), ("C",))),
    QueryChanged(1, "q", "SELECT 1", "new", 25_000_000),
    QueryDropped(1, "q"),
    StreamAdded(1, "A"),
    StreamDropped(1, "A"),
    TableSet(1, "rates", 2, 10),
    TableDropped(1, "rates"),
    QuerySpread(1, "q", "off", "psp_d", 4),
    MigrationBegun(1, "q", "gms", "(A B)", "(B A)", (("A", "B"),), {"predicted": 1}),
    MigrationProgressed(1, "q", "gms", "draining", {"old": 1}),
    MigrationEnded(1, "q", "gms", "(B A)", 4, {}),
    CommandRefused(1, {"command": "rescale", "lanes": 0}, "why not"),
    StateRebuilt(1, "g/0", "A B", 2, 3),
    ChainChanged(1, "A B", (10, 20), (20,), "query r was added", 2),
    SharingChanged(1, "mem_opt", "cpu_opt"),
    LanesRescaled(1, 2, 3),
    PlanReviewed(1, "q", ("q", "r"), "adaptive", "stay", "it is cheap", "(A B)", plans=({"plan": "(A B)", "cost": 1},)),
    LanesReviewed(1, "suggest", "a step takes long", 1, 2, "midstream approve", {"took": 0.9}),
    LanesProposalClosed(1, 2, "withdrawn", "a step takes less by now"),
    ReviewFailed(1, "q", "why not"),
    OptimizerSet(1, "", "auto", "adaptive"),
    ProposalClosed(1, "q", "(B A)", "withdrawn", "it no longer pays"),
    PlanPinned(1, "q", "(A B)", pinned=False),
)


def test_every_kind_is_here() -> None:
    assert {type(event) for event in EVENTS} == set(Event.kinds.values())


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_json_round_trip(event: Event) -> None:
    assert decode(Event, json.loads(json.dumps(encode(event)))) == event


def test_events_of_before_sharing_are_still_read() -> None:
    added = {"event": "query_added", "step": 1, "query": "q", "plan": "A"}
    assert decode(Event, added) == QueryAdded(1, "q", "A", sees="all", exact_from=None)
