"""The commands that an engine and a running job take alike, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from midstream.model.command import declare_operator
from midstream.model.errors import QueryError
from midstream.step.choose import AUTO
from midstream.step.commands.answer_lanes import ApproveLanes, RejectLanes
from midstream.step.commands.approve import Approve
from midstream.step.commands.base import StepCommand
from midstream.step.commands.change_query import ChangeQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.drop_stream import DropStream
from midstream.step.commands.drop_table import DropTable
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.optimize import Optimize
from midstream.step.commands.pin import Pin, Unpin
from midstream.step.commands.reject import Reject
from midstream.step.commands.rescale import Rescale
from midstream.step.commands.reshare import Reshare
from midstream.step.commands.spread import Spread
from midstream.step.reviewing.settings import settings_of_values

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
        strategy: str = AUTO,
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        together: bool = False,
        **options: Any,
    ) -> Receipt:
        """Move a query to another plan, to another `UserOperator` on top, or both, beginning with the next step.

        By `auto` the strategy is the one predicted to suit the move best. The query leaves the plan it shares with
        other queries; `together` carries the shared plan under all of them.
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

    def drop_stream(self, name: str) -> Receipt:
        """Forget a stream that no query reads any more, beginning with the next step; not on Spark."""
        return self._command(DropStream(name))

    def drop_table(self, name: str) -> Receipt:
        """Forget a static table that no query reads any more, beginning with the next step."""
        return self._command(DropTable(name))

    def spread(
        self, query: str, scheme: str, nodes: int | str | None = None, *, plan: str | None = None, **options: Any
    ) -> Receipt:
        """Spread a running query over so many nodes by another scheme, beginning with the next step; no answer changes.

        `off` runs it in lanes again; `auto` nodes are as many as the cost model finds best. Its base rows are listed
        where they are needed then, and it keeps its probing orders, or gets those of a `plan`. `options` are those of
        the scheme: `master`, `segment`, `copies` or `count_bound`; and `relocation`: `aggressive`, unless you say,
        which lists rows at their new nodes at once, or `passive`, by which new rows alone go by the new nodes and the
        others run out where they lie.
        """
        return self._command(Spread(query, scheme, nodes, options, plan or ""))

    def rescale(self, lanes: int) -> Receipt:
        """Spread the state over another number of lanes, beginning with the next step."""
        return self._command(Rescale(lanes))

    def reshare(self, sharing: str) -> Receipt:
        """Let queries share by another mode, beginning with the next step; no answer changes.

        Queries that share already go on in their chains; one that began under `off` stays by itself.
        """
        return self._command(Reshare(sharing))

    def optimize(
        self,
        query: str | None = None,
        policy: str = "adaptive",
        mode: str | None = None,
        *,
        objective: str = "work",
        weights: Mapping[str, float] | None = None,
        allow: Sequence[str] = (),
        review: str | int = "10 seconds",
        effort: float = 0.03,
        horizon: str | int | None = None,
        quiet: Sequence[str] = (),
        lanes: str | None = None,
        units: Mapping[str, float] | None = None,
        **options: float,
    ) -> Receipt:
        """Set what the optimizer may do with a query, or with all that have no settings of their own.

        By its `mode` it does nothing (`off`), says which plan would be better (`suggest`), waits for `approve` or
        `reject` (`ask`) or moves the query itself (`auto`), together with all that share its plan. Where no mode is
        given the job's counts, which is `suggest` at first. `policy` decides when, by `options` of its own. Every
        `review` of event time it looks at the plans in `allow`, or at all, and at once where a plan does more than was
        foreseen; a strategy in that list may carry the query, without one any may. Reviews take the share `effort` of
        the queries' work. `horizon` is for how long a gain counts, and in `quiet` hours of event time, such as
        "22:00-06:00", nothing is looked at.

        `units` are the unit costs that `midstream calibrate` measures. For all queries, the number of lanes is decided
        in the same mode, or in that of `lanes`.
        """
        given = {
            "policy": policy,
            **({} if mode is None else {"mode": mode}),
            "objective": objective,
            "weights": weights or {},
            "allow": allow,
            "review": review,
            "effort": effort,
            "horizon": horizon,
            "quiet": quiet,
            "lanes": lanes,
            "units": units or {},
            "options": options,
        }
        return self._command(
            Optimize(query or "", settings_of_values(given, f"query {query}" if query else "optimize"), mode is None)
        )

    def approve(self, query: str = "", plan: str = "", *, lanes: int | None = None) -> Receipt:
        """Accept the plan that is proposed for a query; a `plan` that is named must still be that one.

        Without a query, accept the number of `lanes` that is proposed.
        """
        _check_one_answer(query, lanes)
        return self._command(Approve(query, plan) if lanes is None else ApproveLanes(lanes))

    def reject(self, query: str = "", plan: str = "", *, lanes: int | None = None) -> Receipt:
        """Reject the plan that is proposed for a query: none is proposed until it would save much more.

        Without a query, reject the number of `lanes` that is proposed.
        """
        _check_one_answer(query, lanes)
        return self._command(Reject(query, plan) if lanes is None else RejectLanes(lanes))

    def pin(self, query: str, plan: str = "") -> Receipt:
        """Keep a query on its plan, or on another one that it moves to first; users may still move it."""
        return self._command(Pin(query, plan))

    def unpin(self, query: str) -> Receipt:
        """Let the optimizer review the plan of a query again."""
        return self._command(Unpin(query))

    def command(self, command: StepCommand) -> Receipt:
        """Give a command as a value: one that another package defines, or one of `midstream.step.commands`."""
        return self._command(command)

    @abstractmethod
    def _command(self, command: StepCommand) -> Receipt:
        """Check a command and give it to the next step."""


def _check_one_answer(query: str, lanes: int | None) -> None:
    if bool(query) == (lanes is not None):
        raise QueryError(
            "an answer is to one proposal", place="approve or reject", remedy="name the query, or else lanes=NUMBER"
        )
