"""Names for the states of a lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from midstream.language.expression import Expression
from midstream.model.window import Window
from midstream.plan.signature import Signature, digest
from midstream.state.lineage import Lineage

Index = Literal["hash", "band", "scan"]


@dataclass(frozen=True)
class RowsSpec:
    """The base rows of one source: payload in order of arrival, the only state that must be durable.

    `kept` is False for a source whose rows are not needed after their own step (a query over one stream without a
    window). `input` names the lane's input that feeds it. `lineage` is there where queries of different windows and
    filters share the rows: then it decides lifetimes, and `window` says only what they are measured on.
    """

    signature: Signature
    label: str
    stream: str
    window: Window | None
    columns: tuple[str, ...]
    clocks: tuple[str, ...]
    kept: bool
    input: str
    lineage: Lineage | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The one source."""
        return (self.label,)

    @cached_property
    def id(self) -> str:
        """The state's name in a manifest."""
        return f"{self.label}.{self.signature.digest()}.rows"


def is_base(state_id: str) -> bool:
    """Whether a state holds rows as they arrived, which cannot be computed again.

    >>> is_base("A.68d08664235b.rows"), is_base("A+B.b20281209a84.scan")
    (True, False)
    """
    return state_id.endswith((".rows", ".pending", ".held"))


def is_table(state_id: str) -> bool:
    """Whether a listing holds a table that an operator or a migration keeps beside its states.

    >>> is_table("eddy.68d08664235b.table"), is_table("q.12.held"), is_table("A.68d08664235b.rows")
    (True, True, False)
    """
    return state_id.endswith((".table", ".held"))


@dataclass(frozen=True)
class StateSpec:
    """A join state: the combinations of a signature, sorted by a key for hash or range search, or unsorted.

    Everything in it can be computed again from base rows. `base` has the rows it is an index of, where their lineage
    decides how long they live.
    """

    signature: Signature
    labels: tuple[str, ...]
    clocks: tuple[str, ...]
    index: Index
    key: tuple[Expression, ...] = ()
    base: RowsSpec | None = field(default=None, compare=False)

    @property
    def lineage(self) -> Lineage | None:
        """What decides the lifetimes of the rows it is an index of."""
        return self.base.lineage if self.base else None

    @cached_property
    def id(self) -> str:
        """The state's name in a manifest."""
        how = digest(f"{self.index}:{','.join(e.text() for e in self.key)}")[:6] if self.key else self.index
        return f"{'+'.join(self.labels)}.{self.signature.digest()}.{how}"
