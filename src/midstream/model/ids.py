"""What names a lane and what was counted in a manifest: values, not texts to be taken apart."""

from __future__ import annotations

from dataclasses import dataclass

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
