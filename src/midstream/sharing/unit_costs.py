"""What the operations of a chain cost in this engine, in seconds.

Measured, not guessed: `python -m benchmarks.sharing.calibrate` measures them on the machine it runs on and prints this
file's numbers anew. Only their proportions matter to where a chain is cut.
"""

from __future__ import annotations

from midstream.sharing.costs.chain import UnitCosts

MEASURED = UnitCosts(
    probe=0.0,
    purge=20e-9,
    route=58e-9,
    filter=0.0,
    union=0.0,
    operator=0.0,
    boundary=90e-6,
)
"""Probing, filters and unions cost the same wherever the cuts are: in sets they are done once for the whole chain."""
