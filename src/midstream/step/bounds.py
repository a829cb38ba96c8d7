"""Which rows a step may purge: for each state the least end of lifetime that matters to any unit that could read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from midstream.model.ids import StateId
from midstream.model.window import Clock
from midstream.plan.signature import Signature
from midstream.step.unit_step import UnitStep

Bounds = dict[Clock, int]
"""By clock the least end of lifetime that still matters."""


def state_bounds(steps: Sequence[UnitStep]) -> dict[StateId, Bounds]:
    """The bounds of every state that the units may read in this step.

    A unit counts also where its present plan has no such state, for it may migrate to one that has.
    """
    own = {step.unit.name: step.bounds() for step in steps}
    readers = _Readers(steps, own)
    bounds: dict[StateId, Bounds] = {}
    for step in steps:
        for spec in step.specs():
            if spec.id not in bounds:
                bounds[spec.id] = readers.least(spec.signature.whole(), spec.labels, own[step.unit.name])
    return bounds


class _Readers:
    """Which units could read a state in some plan, found once for each set of sources."""

    def __init__(self, steps: Sequence[UnitStep], own: Mapping[str, Bounds]) -> None:
        self._units, self._own = [step.unit for step in steps], own
        self._by_labels: dict[tuple[str, ...], dict[Signature, list[Bounds]]] = {}

    def least(self, signature: Signature, labels: tuple[str, ...], own: Bounds) -> Bounds:
        """On each clock the least bound of those that could read the state; `own` is that of its only reader."""
        if labels not in self._by_labels:
            found: dict[Signature, list[Bounds]] = {}
            for unit in self._units:
                if set(labels) <= set(unit.query.aliases):
                    found.setdefault(unit.binding.signature(labels), []).append(self._own[unit.name])
            self._by_labels[labels] = found
        readers = self._by_labels[labels].get(signature, [own])
        return {clock: min(reader[clock] for reader in readers) for clock in own}
