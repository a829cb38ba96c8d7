"""The contract of a way to spread a join: the nodes that keep a row, and the nodes that a partial result visits.

`Passive` joins two of them while nodes come or go and no row moves: new rows go by another deployment, older ones run
out (Wang §14.2).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

import midstream.ring.spreadings as room
from midstream.model.discovery import OpenSet
from midstream.model.errors import PlanError
from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words
from midstream.ring.deployment import Deployment


class Spreading(ABC):
    """One way of spreading a join over nodes; found by discovery; no other file knows its name.

    Only base rows are kept. A new row begins as a partial result of one source, and visits the other sources one after
    the other, in the order that its own source has. For every order that `check` lets pass, every partial result meets
    every row of the next source that lies within `Deployment.joinable`, and agrees with it in all key classes, at
    **exactly one** of its visits, and no other row at more than one. That is all that an exact answer needs; which
    rows have come when is the host's affair, and the same for every spreading.

    Pure: equal arguments, equal nodes, on every machine.
    """

    name: ClassVar[str]

    options: ClassVar[tuple[str, ...]] = ()
    """Which of `master`, `segment`, `copies` and `count_bound` it goes by."""

    preference: ClassVar[int | None] = None
    """When it is tried where a user leaves the choice open: the least first; None: never."""

    by_key: ClassVar[bool] = False
    """Whether rows are placed by a key, which pays where partial results carry it at every hop."""

    stays: ClassVar[bool] = False
    """Whether a partial result never leaves the node of its first visit, so that nothing is sent at later hops."""

    ages: ClassVar[bool] = False
    """Whether a row is at home elsewhere as it grows older; then it is looked where it is in every step."""

    keeps_slices: ClassVar[bool] = False
    """Whether it goes by state slice tables, which grow as rows come."""

    rounds: ClassVar[int] = 1
    """How many parts of a step are in flight at once, each with a moment of its own."""

    @abstractmethod
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        """Choose the nodes that keep each row of this source."""

    @abstractmethod
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        """Choose the nodes where each partial result visits its next source, `label`, and the event times it meets."""

    def check(self, deployment: Deployment, orders: Sequence[Sequence[str]]) -> None:
        """Raise a `PlanError` if the join cannot be spread so; an order lists the sources as one's rows visit them."""
        return


@dataclass(frozen=True)
class Passive(Spreading):
    """Rows from the event time `begins` on by the spreading `now`, older ones by the `former` one as it was `formerly`.

    Either is exact for all rows, and a row goes by one of them: what a partial result meets of the older rows it meets
    by the former, and the others by the present one. That holds of any two spreadings, and of one with fewer nodes.
    """

    name = "passive"

    now: Spreading
    begins: int
    former: Spreading
    formerly: Deployment

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        older = rows.ts < self.begins
        if not older.any():
            return self.now.home(deployment, label, rows)
        if older.all():
            return self.former.home(self._formerly(deployment), label, rows)
        before, after = np.flatnonzero(older), np.flatnonzero(~older)
        left = self.former.home(self._formerly(deployment), label, _taken(rows, before))
        come = self.now.home(deployment, label, _taken(rows, after))
        return Copies(np.concatenate([before[left.row], after[come.row]]), np.concatenate([left.node, come.node]))

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        formerly = self._formerly(deployment)
        before = self.former.visit(replace(formerly, until=min(formerly.until, self.begins - 1)), partials, label)
        after = self.now.visit(replace(deployment, since=max(deployment.since, self.begins)), partials, label)
        return Visits.together([before.not_in_vain(), after.not_in_vain()])

    def _formerly(self, deployment: Deployment) -> Deployment:
        # The former nodes at the moments of the present ones, for rows of the same times.
        return replace(self.formerly, moments=deployment.moments, since=deployment.since, until=deployment.until)


def _taken(rows: StreamRows, at: Words) -> StreamRows:
    return StreamRows(rows.ts[at], {key: codes[at] for key, codes in rows.keys.items()})


_SET = OpenSet(
    room, Spreading, "midstream.spreadings", "unknown spread", place="spread", error=PlanError, also=("auto",)
)
spreadings, spreading = _SET.all, _SET.named
