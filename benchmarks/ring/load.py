"""How much is measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """The numbers of nodes, whether inputs are small, and after how many seconds a run is given up."""

    nodes: tuple[int, ...]
    quick: bool
    budget: float


FULL = Load(nodes=(1, 2, 4, 16), quick=False, budget=120.0)
QUICK = Load(nodes=(2, 5), quick=True, budget=120.0)
"""Shows that everything runs and agrees; its times mean nothing."""
