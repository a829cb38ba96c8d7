"""PSP: a ring of time slices, through which rows move as they grow older (Wang §12.1-12.3).

The node of a row is the one whose range of ages holds it; a partial result visits the nodes whose ranges meet what it
can join. Any join condition, no copies, and any probing order.

Differs from the dissertation in that a step is one moment for all its rows, where each tuple there is a moment of its
own. Ages are at most by a step's length greater than a probe finds them there, the bounds of a visit are moved by as
much, and the last slice takes all that is older: the sets of rows that meet are the same. A slice's range is half-open,
as there; windows are inclusive, as everywhere here.
"""

from __future__ import annotations

import numpy as np
from typing_extensions import override

from midstream.ring.columns import EARLIEST, LATEST, Copies, Partials, StreamRows, Visits, Words, expanded
from midstream.ring.deployment import Deployment
from midstream.ring.spreading import Spreading


class Psp(Spreading):
    """Home by age at the newest moment; visits to all slices between the least and the greatest age that may join."""

    name = "psp"
    options = ("count_bound",)
    ages = True

    @override
    def home(self, deployment: Deployment, label: str, rows: StreamRows) -> Copies:
        return Copies.single(node_of(deployment, label, deployment.moments[-1] - rows.ts))

    @override
    def visit(self, deployment: Deployment, partials: Partials, label: str) -> Visits:
        return visits_at(deployment, partials, label, np.full(len(partials), deployment.moments[-1]))


def node_of(deployment: Deployment, label: str, ages: Words) -> Words:
    """Return the node whose slice holds rows of these ages."""
    return deployment.ring(label)[slice_of(deployment, label, ages)]


def slice_of(deployment: Deployment, label: str, ages: Words) -> Words:
    """Find the slice of rows of these ages, counted from the head, which also has rows newer than the moment."""
    found: Words = np.searchsorted(deployment.slice_ends(label), ages, "right")
    return found


def visits_at(deployment: Deployment, partials: Partials, label: str, moments: Words) -> Visits:
    """Compute the visits of partial results to slices as they lie at the moment of each."""
    low, high = joinable = deployment.joinable(partials, label)
    partial, place = expanded(slice_of(deployment, label, moments - high), slice_of(deployment, label, moments - low))
    ends, now = deployment.slice_ends(label), moments[partial]
    first = now - np.append(ends, 0)[place] + 1
    last = now - np.append(0, ends)[place]
    first[place == len(ends)] = EARLIEST
    last[place == 0] = LATEST
    return Visits.within(joinable, partial, deployment.ring(label)[place], (first, last))
