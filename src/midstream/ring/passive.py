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
