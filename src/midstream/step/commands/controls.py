"""The commands that an engine and a running job take alike, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from midstream.model.command import declare_operator
from midstream.step.commands.base import StepCommand
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale
from midstream.step.commands.reshare import Reshare

Receipt = TypeVar("Receipt")
"""What a command is answered with: its number in the command log where there is one, else nothing."""


class Controls(ABC, Generic[Receipt]):
    """What can be commanded while queries run.

    A command takes effect with the next step; what is wrong with it is raised at once as a `MidstreamError`, and
    nothing has changed then.
    """

    def migrate(
        self,
        name: str,
        plan: str | None = None,
        strategy: str = "moving_state",
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        together: bool = False,
        **options: Any,
    ) -> Receipt:
        """Carry a query to another plan, to another `UserOperator` on top, or both, beginning with the next step.

        It leaves the plan it shares with other queries; `together` carries the shared plan under all of them.
        """
        above = declare_operator(operator, operator_options)
        return self._command(Migrate(name, plan or "", strategy, options, above, together))

    def change_query(self, name: str, sql: str) -> Receipt:
        """Give a running query another window or filter, or another select list with the same columns.

        It keeps its plan and its state and runs by the new text from the next step on; the event `QueryChanged` says
        from when the answers are exact.
        """
        return self._command(ChangeQuery(name, sql))

    def drop_query(self, name: str) -> Receipt:
        """End a query; the next step no longer answers it."""
        return self._command(DropQuery(name))

    def rescale(self, lanes: int) -> Receipt:
        """Spread the state over another number of lanes, beginning with the next step."""
        return self._command(Rescale(lanes))

    def reshare(self, sharing: str) -> Receipt:
        """Let queries share by another mode, beginning with the next step; no answer changes.

        Queries that share already go on in their chains; one that began under `off` stays by itself.
        """
        return self._command(Reshare(sharing))

    @abstractmethod
    def _command(self, command: StepCommand) -> Receipt:
        """Check a command and have the next step take it."""
