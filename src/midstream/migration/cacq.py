"""To an eddy over SteMs (CACQ: JISC §3.1)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from midstream.migration.moving_state import MovingState
from midstream.migration.strategy_contract import MigrationRequest
from midstream.plan.tree import Eddy


class Cacq(MovingState):
    """Leave the ways to an eddy: SteMs are base states, listed as they are; no intermediate state is kept.

    CACQ consumes no computation at a plan transition: it ends as it begins, and from then on nothing need be migrated,
    for routing changes by itself. The price is a hop through the eddy for each row and each visit, and joins repeated
    for lack of intermediate results.
    """

    name: ClassVar[str] = "cacq"

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if isinstance(move.new, Eddy):
            return None
        return f"{move.new.notation()} is not an eddy; write such as eddy({' '.join(move.new.aliases())})"
