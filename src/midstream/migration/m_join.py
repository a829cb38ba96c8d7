"""To a multi-way join without intermediate state (M-Join: HybMig §2.3, Wang §11.1)."""

from __future__ import annotations

from typing import ClassVar

from typing_extensions import override

from midstream.migration.moving_state import MovingState
from midstream.migration.strategy_contract import MigrationRequest
from midstream.plan.tree import MultiJoin

SHOWN = 4  # so many probing orders are written out as an example: of many sources they are quadratically long


class MJoin(MovingState):
    """Take on other probing orders: base states are listed as they are, whatever intermediate state there was is left.

    Nothing is compared, so the migration ends as it begins; a base state that an order probes by another key is only
    sorted again. The price is paid later, by every row: work is repeated for lack of intermediate results.
    """

    name: ClassVar[str] = "m_join"

    @override
    def refusal(self, move: MigrationRequest) -> str | None:
        if isinstance(move.new, MultiJoin):
            return None
        names = move.new.aliases()
        orders = [f"{first}: {' '.join(one for one in names if one != first)}" for first in names[:SHOWN]]
        example = " | ".join(orders if len(names) <= SHOWN else [*orders, "..."])
        return f"{move.new.notation()} keeps more than base rows or has no probing orders; write such as [{example}]"
