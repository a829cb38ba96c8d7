"""Segments: event time cut into equal lengths, which is how the replicating spreadings divide streams (Wang §15.1)."""

from __future__ import annotations

from midstream.model.errors import PlanError
from midstream.model.words import span_text
from midstream.ring.columns import Words
from midstream.ring.deployment import Deployment


def check_segment(deployment: Deployment) -> None:
    """Raise if a segment is shorter than the widest window: rows would be copied to more than their neighbours."""
    widest = max(deployment.windows.values())
    if deployment.segment < max(widest, 1):
        raise PlanError(
            f"a segment of {span_text(deployment.segment)} is shorter than the widest window, {span_text(widest)}",
            place="segment",
            remedy=f"name at least {span_text(max(widest, 1))}",
        )


def bounds(deployment: Deployment, segments: Words) -> tuple[Words, Words]:
    """Compute the first and the last event time of these segments."""
    low = segments * deployment.segment
    return low, low + deployment.segment - 1
