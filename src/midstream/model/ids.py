"""What names a lane, a state and what was counted in a manifest: values, not texts to be taken apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from typing_extensions import override

from midstream.model.codec import Text


@dataclass(frozen=True, order=True)
class LaneId(Text):
    """A lane: one of the partitions that the rows of a lane group are spread over.

    >>> str(LaneId("single", 0)), LaneId.parse("key-1.2.17")
    ('single.0', LaneId(group='key-1.2', number=17))
    """

    group: str
    number: int

    @override
    def __str__(self) -> str:
        return f"{self.group}.{self.number}"

    @override
    @classmethod
    def parse(cls, text: str) -> LaneId:
        group, _, number = text.rpartition(".")
        return LaneId(group, int(number))


@dataclass(frozen=True, order=True)
class CounterKey(Text):
    """Whose counters: those of an operator in all lanes of a group. Equal operators of two groups do separate work.

    >>> str(CounterKey("single", "join A B")), CounterKey.parse("single join A B")
    ('single join A B', CounterKey(group='single', operator='join A B'))
    """

    group: str
    operator: str

    @override
    def __str__(self) -> str:
        return f"{self.group} {self.operator}"

    @override
    @classmethod
    def parse(cls, text: str) -> CounterKey:
        group, _, operator = text.partition(" ")
        return CounterKey(group, operator)


class StateKind(Enum):
    """What a listing of a lane holds."""

    ROWS = "rows"
    """Base rows of a source, as they arrived."""

    QUEUE = "pending"
    """Rows that wait for the watermark."""

    HELD = "held"
    """Results, or a user's operator, that nothing can compute again."""

    TABLE = "table"
    """A table that an operator keeps beside its states."""

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

    def __new__(cls, owner: str, content: str, part: str) -> StateId:
        """An id of these three parts; `part` is a kind's word, or names an index."""
        made = super().__new__(cls, f"{owner}.{content}.{part}")
        made.owner, made.content, made.part = owner, content, part
        made.kind = _KINDS.get(part, StateKind.INDEX)
        return made

    def __getnewargs__(self) -> tuple[str, str, str]:  # type: ignore[override]
        return self.owner, self.content, self.part

    @override
    @classmethod
    def parse(cls, text: str) -> StateId:
        head, _, part = text.rpartition(".")
        owner, _, content = head.rpartition(".")
        return StateId(owner, content, part)

    @property
    def is_base(self) -> bool:
        """Whether it holds what nothing can compute again."""
        return self.kind in (StateKind.ROWS, StateKind.QUEUE, StateKind.HELD)

    @property
    def is_table(self) -> bool:
        """Whether it is a table that an operator or a migration keeps beside its states."""
        return self.kind in (StateKind.TABLE, StateKind.HELD)

    def same_content(self, other: StateId) -> bool:
        """Whether both name the same combinations, perhaps under different indexes."""
        return (self.owner, self.content) == (other.owner, other.content)


_KINDS = {kind.value: kind for kind in StateKind if kind is not StateKind.INDEX}
