"""Names for the states of a lane."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from midstream.expr.expression import Expression
from midstream.model.ids import StateId, StateKind, digest
from midstream.model.window import Clock, Window
from midstream.plan.signature import Signature
from midstream.state.combinations import Heading
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
    clocks: tuple[Clock, ...]
    kept: bool
    input: str
    lineage: Lineage | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The one source, as a tuple."""
        return (self.label,)

    @cached_property
    def heading(self) -> Heading:
        """The heading of its rows as combinations of one."""
        return Heading((self.label,), self.clocks, self.clocks)

    @cached_property
    def id(self) -> StateId:
        """The state's name in a manifest."""
        return StateId(self.label, self.signature.digest(), StateKind.ROWS.value)


@dataclass(frozen=True)
class StateSpec:
    """A join state: the combinations of a signature, sorted by a key for hash or range search, or unsorted.

    Everything in it can be computed again from base rows. `base` has the rows it is an index of, where their lineage
    decides how long they live.
    """

    signature: Signature
    labels: tuple[str, ...]
    clocks: tuple[Clock, ...]
    index: Index
    key: tuple[Expression, ...] = ()
    base: RowsSpec | None = field(default=None, compare=False)

    @cached_property
    def heading(self) -> Heading:
        """The heading of its combinations."""
        return Heading(tuple(self.labels), tuple(self.clocks), tuple(self.clocks))

    @cached_property
    def lineage(self) -> Lineage | None:
        """The lineage that decides how long the indexed rows live."""
        return self.base.lineage if self.base else None

    @cached_property
    def id(self) -> StateId:
        """The state's name in a manifest."""
        how = digest(f"{self.index}:{','.join(e.text() for e in self.key)}")[:6] if self.key else self.index
        return StateId("+".join(self.labels), self.signature.digest(), how)
