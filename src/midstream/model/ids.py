"""What names a lane, an operator, a state and what was counted in a manifest: values, not texts to be taken apart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

from typing_extensions import override

from midstream.model.codec import Text


def digest(text: str) -> str:
    """Hash a text to twelve hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True, order=True)
class LaneId(Text):
    """A lane: one of the partitions that the rows of a lane group are spread over.

    >>> str(LaneId("single", 0)), LaneId.parse("key-1.2.17")
    ('single.0', LaneId(group='key-1.2', number=17))
    """

    group: str
    number: int

    def __hash__(self) -> int:
        return hash(self.group) ^ self.number

    @override
    def __str__(self) -> str:
        return f"{self.group}.{self.number}"

    @override
    @classmethod
    def parse(cls, text: str) -> LaneId:
        group, _, number = text.rpartition(".")
        return LaneId(group, int(number))


class OperatorId(str, Text):
    """What is counted: the work of an operator of this `kind` and `name`, in all or in one `slice` of a cut state.

    What is counted by slice is part of what the operator counts as a whole, so sums over operators leave it out. States
    count like operators, with the kind "state". An id is its own text, as a `StateId` is.

    >>> whole = OperatorId("join", "A B")
    >>> one = whole.in_slice(5_000_000)
    >>> whole, one, one.kind, one.name, one.slice, OperatorId.parse(one).slice
    ('join A B', 'slice 5000000 of join A B', 'join', 'A B', 5000000, 5000000)
    """

    kind: str
    name: str
    slice: int | None

    def __new__(cls, kind: str, name: str, slice: int | None = None) -> OperatorId:
        """Make an id of these parts; `slice` is the age at which the slice ends."""
        made = super().__new__(cls, f"{kind} {name}" if slice is None else f"slice {slice} of {kind} {name}")
        made.kind, made.name, made.slice = kind, name, slice
        return made

    def __getnewargs__(self) -> tuple[str, str, int | None]:  # type: ignore[override]
        return self.kind, self.name, self.slice

    @override
    @classmethod
    def parse(cls, text: str) -> OperatorId:
        found = _SLICE.match(text)
        kind, _, name = text[found.end() if found else 0 :].partition(" ")
        return OperatorId(kind, name, int(found[1]) if found else None)

    @cached_property
    def keys(self) -> Mapping[str, CounterKey]:
        """The key of the operator's counters in each group; it is made when it is asked for."""
        return _Keys(self)

    def in_slice(self, end: int) -> OperatorId:
        """Return the id of the operator's work in the slice that ends at this age."""
        return OperatorId(self.kind, self.name, end)


class _Keys(dict[str, "CounterKey"]):
    """The keys of one operator's counters, by group."""

    def __init__(self, operator: OperatorId) -> None:
        super().__init__()
        self._operator = operator

    def __missing__(self, group: str) -> CounterKey:
        key = self[group] = CounterKey(group, self._operator)
        return key


_SLICE = re.compile(r"slice (\d+) of ")


class CounterKey(str, Text):
    """Whose counters: those of an operator in all lanes of a group. Equal operators of two groups do separate work.

    A key is its own text, as an `OperatorId` is.

    >>> key = CounterKey("single", OperatorId("join", "A B"))
    >>> key, key.group, key.operator, CounterKey.parse(key).operator.kind
    ('single join A B', 'single', 'join A B', 'join')
    """

    group: str
    operator: OperatorId

    def __new__(cls, group: str, operator: OperatorId) -> CounterKey:
        """Make the key of an operator's counters in a group."""
        made = super().__new__(cls, f"{group} {operator}")
        made.group, made.operator = group, operator
        return made

    def __getnewargs__(self) -> tuple[str, OperatorId]:  # type: ignore[override]
        return self.group, self.operator

    @override
    @classmethod
    def parse(cls, text: str) -> CounterKey:
        group, _, operator = text.partition(" ")
        return CounterKey(group, OperatorId.parse(operator))


class StateKind(Enum):
    """What a listing of a lane holds."""

    ROWS = "rows"
    """Base rows of a source, as they arrived."""

    QUEUE = "pending"
    """Rows that wait for the watermark."""

    HELD = "held"
    """Results, or a user's operator, that nothing can compute again."""

    TABLE = "table"
    """A table that an operator keeps next to its states."""

    INDEX = "index"
    """Combinations under one index; they can be computed again."""


class StateId(str, Text):
    """A state, queue or table of a lane: whose it is, what it holds, and which kind or index of that it is.

    Two ids of one `owner` and `content` name the same combinations under different indexes. An id is its own text, made
    once, so that it costs as a key what a text does.

    >>> id = StateId("A+B", "b20281209a84", "scan")
    >>> id, id.kind.name, StateId.parse("A.68d08664235b.rows").kind.name, id.same_content(StateId.parse(f"{id}x"))
    ('A+B.b20281209a84.scan', 'INDEX', 'ROWS', True)
    """

    owner: str
    content: str
    part: str
    kind: StateKind

    combinations: str
    """What it holds, whatever the index: a base state's index holds what its base rows hold."""

    is_table: bool
    """Whether it is a table that an operator or a migration keeps next to its states."""

    def __new__(cls, owner: str, content: str, part: str) -> StateId:
        """Make an id of these three parts; `part` is a kind's word, or names an index."""
        made = super().__new__(cls, f"{owner}.{content}.{part}")
        made.owner, made.content, made.part = owner, content, part
        made.kind = _KINDS.get(part, StateKind.INDEX)
        by_itself = made.kind in (StateKind.QUEUE, StateKind.HELD)
        made.combinations = made if by_itself else f"{owner}.{content}"
        made.is_table = made.kind in (StateKind.TABLE, StateKind.HELD)
        return made

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return self.owner, self.content, self.part

    @override
    @classmethod
    def parse(cls, text: str) -> StateId:
        head, _, part = text.rpartition(".")
        owner, _, content = head.rpartition(".")
        return StateId(owner, content, part)

    @cached_property
    def counted(self) -> OperatorId:
        """The id for counting rows inserted into the state, purged from it and moved."""
        return OperatorId("state", str(self))

    @property
    def is_base(self) -> bool:
        """Whether the state holds what cannot be computed again."""
        return self.kind in (StateKind.ROWS, StateKind.QUEUE, StateKind.HELD)

    def same_content(self, other: StateId) -> bool:
        """Return whether both name the same combinations, perhaps under different indexes."""
        return (self.owner, self.content) == (other.owner, other.content)


_KINDS = {kind.value: kind for kind in StateKind if kind is not StateKind.INDEX}
