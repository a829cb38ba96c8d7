"""The codec: what it writes it reads again, for every frozen value that a checkpoint or a task's report is made of."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from midstream.commands.base import StepCommand
from midstream.migration.hybrid.characteristics import Entry
from midstream.migration.under_way.migration_task import BegunTask
from midstream.model.codec import Tagged, Text, decode, encode, written_as
from midstream.model.command import Command
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError
from midstream.model.events import Event, RowsLate
from midstream.model.ids import CounterKey, OperatorId
from midstream.model.manifest import BoundQuery, ChunkRef, Manifest
from midstream.model.schema import StreamSchema, TableSchema
from midstream.model.window import Clock
from midstream.operators.user import Standing
from midstream.runtime.result_operator import Answer
from midstream.units.lane_step import LaneOutput
from tests.unit.building import unbound

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
COLUMNS = st.just(pa.schema([("k", pa.decimal128(9, 2)), ("ts", pa.timestamp("us", "UTC"))]))
STREAMS = st.builds(
    StreamSchema,
    st.text(max_size=5),
    COLUMNS,
    st.just("ts"),
    st.integers(0),
    st.none() | st.integers(0),
)
ROOTS: tuple[type[Any], ...] = (
    Manifest, LaneOutput, Standing, BegunTask, Entry, *Event.kinds.values(), *Command.kinds.values(),
)  # fmt: skip
GROUPS = st.sampled_from(["single", "key-0123456789ab", "key-0123456789ab-1"])
OPERATORS = st.builds(OperatorId, st.sampled_from(["join", "state"]), st.text(max_size=4), st.none() | st.integers(0))
CLOCKS = st.builds(Clock, st.none() | st.text(max_size=3))
BY_HAND: Mapping[Any, st.SearchStrategy[Any]] = {
    StreamSchema: STREAMS, Clock: CLOCKS, OperatorId: OPERATORS, Any: JSON,
    CounterKey: st.builds(CounterKey, GROUPS, OPERATORS), pa.Schema: COLUMNS,
    TableSchema: st.builds(TableSchema, st.text(max_size=5), COLUMNS),
    BoundQuery: st.builds(unbound, st.text(max_size=5)),  # See tests/unit/sql/test_encoded_queries.py.
}  # fmt: skip


def parts(kind: type[Any], within: tuple[type[Any], ...] = ()) -> Iterator[type[Any]]:
    """The dataclasses that a type is made of, itself included, results of a lane left out: a task delivers those.

    A value may have others of its own type `within` it.
    """
    if kind in within:
        return
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind is not Answer:
        yield kind
        for hint in get_type_hints(kind).values():
            yield from parts(hint, (*within, kind))
    for argument in get_args(kind):
        yield from parts(argument, within)


KINDS = sorted(
    {part for root in ROOTS for part in parts(root)} - {Event, Command, BoundQuery}, key=lambda kind: kind.__name__
)


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint, those of its defaults among them."""
    if hint in BY_HAND:
        return BY_HAND[hint]
    if hint in (Event, Command):
        return st.one_of([values(kind) for kind in hint.kinds.values()])
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return st.deferred(lambda: frozen_values(hint))
    match getattr(hint, "__origin__", None), get_args(hint):
        case origin, (key, item) if isinstance(origin, type) and issubclass(origin, Mapping):
            return st.dictionaries(values(key), values(item), max_size=2)
        case origin, (item, end) if origin is tuple and end is Ellipsis:
            return st.lists(values(item), max_size=2).map(tuple)
        case origin, items if origin is tuple:
            return st.tuples(*map(values, items))
        case origin, (item,) if origin is frozenset:
            return st.frozensets(values(item), max_size=3)
        case None, items if items:
            return st.one_of([values(item) for item in items])
    if hint is float:
        return st.floats(allow_nan=False, allow_infinity=False)  # What is not a number equals not even itself.
    return st.text(max_size=4) if hint is str else st.from_type(hint)


def frozen_values(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Values of a dataclass."""
    hints = get_type_hints(kind)
    given = {f.name: values(hints[f.name]) for f in dataclasses.fields(kind)}
    needed = {f.name for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING}
    required = {name: one for name, one in given.items() if name in needed}
    optional = {name: one for name, one in given.items() if name not in needed}
    if kind is LaneOutput:
        required["results"] = st.just({})
    return st.fixed_dictionaries(required, optional=optional).map(lambda fields: kind(**fields))


def test_the_values_are_found() -> None:
    names = {kind.__name__ for kind in KINDS}
    assert names >= {"Manifest", "QueryEntry", "ChunkRef", "StreamSchema", "Chain", "AddQuery", "StepDone", "Successor"}
    assert len(names) > 35


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_what_is_written_is_read_again(kind: type[Any]) -> None:
    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
    @given(values(kind))
    def holds(value: Any) -> None:
        base = Event if issubclass(kind, Event) else Command if issubclass(kind, Command) else kind
        assert decode(base, json.loads(json.dumps(encode(value)))) == value

    holds()


def test_fields_at_their_default_are_left_out() -> None:
    assert encode(Counters(rows_in=2)) == {"rows_in": 2}
    assert encode(ChunkRef("n", 1, 2, 3)) == {"name": "n", "rows": 1, "bytes": 2, "checksum": 3}


def test_kinds_are_written_in_full_under_their_tag() -> None:
    assert encode(RowsLate(1, "A", 2, 3)) == {"event": "rows_late", "step": 1, "stream": "A", "rows": 2, "watermark": 3}
    assert "step_command" not in Command.kinds, "a family is not a kind"
    assert issubclass(Command.kinds["add_query"], StepCommand)


def test_an_unknown_kind_says_which_there_are() -> None:
    with pytest.raises(CheckpointError, match=r"unknown event 'explosion' \(at event log\).*rows_late"):
        decode(Event, {"event": "explosion"})


@pytest.mark.parametrize(
    ("kind", "value", "error"),
    [
        (Counters, {"rows_eaten": 1}, TypeError),
        (ChunkRef, {"name": "n"}, TypeError),
        (ChunkRef, {"name": "n", "rows": 1, "bytes": 2, "checksum": 3, "born": 7}, TypeError),
        (Manifest, {"step": 3}, KeyError),
        (Manifest, [], AttributeError),
        (Manifest, 5, TypeError),
    ],
)
def test_what_encode_cannot_have_written_is_not_read(kind: type[Any], value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode(kind, value)


class Name(Text):
    """A value that is written as one text."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __str__(self) -> str:
        return f"<{self.word}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Name) and other.word == self.word

    def __hash__(self) -> int:
        return hash(self.word)

    @classmethod
    def parse(cls, text: str) -> Name:
        return Name(text[1:-1])


@dataclass(frozen=True)
class Node:
    """A value with everything that is uncommon: itself inside, a text as a key, another name on disk, nested sets."""

    kind: str = field(metadata=written_as("class"))
    below: Node | None = None
    names: Mapping[Name, Name] = field(default_factory=dict)
    sets: frozenset[frozenset[str]] = frozenset()


def test_uncommon_fields() -> None:
    node = Node("a", Node("b"), {Name("x"): Name("y")}, frozenset({frozenset("dc"), frozenset("a")}))
    written = {"class": "a", "below": {"class": "b"}, "names": {"<x>": "<y>"}, "sets": [["a"], ["c", "d"]]}
    assert encode(node) == written
    assert decode(Node, written) == node


def test_no_form_for_what_json_could_not_tell_apart() -> None:
    @dataclass(frozen=True)
    class Vague:
        """Either of two."""

        one: Any = None

    Vague.__annotations__["one"] = "Counters | ChunkRef"
    with pytest.raises(TypeError, match="JSON does not distinguish"):
        encode(Vague())


def test_a_family_of_its_own() -> None:
    @dataclass(frozen=True)
    class Shape(Tagged, tag="shape"):
        """The base."""

    @dataclass(frozen=True)
    class RoundThing(Shape):
        """A kind."""

        size: int = 1

    assert encode(RoundThing()) == {"shape": "round_thing", "size": 1}
    assert decode(Shape, {"shape": "round_thing"}) == RoundThing()
    assert "round_thing" not in Event.kinds
