"""Nodes come or go and no row moves: new rows go by another deployment, older ones run out (Wang §14.2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from typing_extensions import override

from midstream.ring.columns import Copies, Partials, StreamRows, Visits, Words
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading


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
        older, newer = np.flatnonzero(rows.ts < self.begins), np.flatnonzero(rows.ts >= self.begins)
        before = self.former.home(self._formerly(deployment), label, _taken(rows, older))
        after = self.now.home(deployment, label, _taken(rows, newer))
        return Copies(
            np.concatenate([older[before.row], newer[after.row]]),
            np.concatenate([before.node, after.node]),
        )

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        before = self.former.visit(self._formerly(deployment), partials, label)
        after = self.now.visit(deployment, partials, label)
        older, newer = before.low < self.begins, after.high >= self.begins
        return Visits(
            np.concatenate([before.partial[older], after.partial[newer]]),
            np.concatenate([before.node[older], after.node[newer]]),
            np.concatenate([before.low[older], np.maximum(after.low[newer], self.begins)]),
            np.concatenate([np.minimum(before.high[older], self.begins - 1), after.high[newer]]),
        )

    def _formerly(self, deployment: Deployment) -> Deployment:
        """The former nodes at the moments of the present ones."""
        return replace(self.formerly, moments=deployment.moments)


def _taken(rows: StreamRows, at: Words) -> StreamRows:
    return StreamRows(rows.ts[at], {key: codes[at] for key, codes in rows.keys.items()})
