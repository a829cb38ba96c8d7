"""The commands that an engine and a running job take alike, as methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, getdoc, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from midstream.commands.add_query import AddQuery
from midstream.commands.answer_proposal import Approve, Reject
from midstream.commands.base import StepCommand
from midstream.commands.change_query import ChangeQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.drop_stream import DropStream
from midstream.commands.drop_table import DropTable
from midstream.commands.migrate import Migrate
from midstream.commands.optimize import Optimize
from midstream.commands.pin import Pin, Unpin
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.spread import Spread
from midstream.proposals.settings import settings_of_values
from midstream.sql.job_specs import QuerySpec
from midstream.units.choose import AUTO

Receipt = TypeVar("Receipt")
"""What a command is answered with: its number in the command log where there is one, else nothing."""

Given = ParamSpec("Given")


def gives(
    kind: Callable[Given, StepCommand], *, name: str = ""
) -> Callable[Concatenate[Controls[Receipt], Given], Receipt]:
    """Make the method that gives a command of a kind: it takes the command's fields, and has its docstring.

    The field `name` is the method's parameter called `name`.
    """

    make: Callable[..., StepCommand] = kind

    def give(self: Controls[Receipt], /, *values: Given.args, **named: Given.kwargs) -> Receipt:
        return self._command(make(*values, **{name if one == "name" else one: value for one, value in named.items()}))

    taken, itself = signature(kind), Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)
    each = [one.replace(name="name") if one.name == name else one for one in taken.parameters.values()]
    give.__signature__ = taken.replace(parameters=[itself, *each])  # type: ignore[attr-defined]
    give.__doc__ = getdoc(kind)
    return give


class Controls(ABC, Generic[Receipt]):
    """What can be commanded while queries run.

    A command takes effect with the next step; what is wrong with it is raised at once as a `MidstreamError`, and
    nothing has changed then.
    """

    def add_query(
        self,
        name: str,
        sql: str,
        plan: str | None = None,
        sink: Any = None,
        *,
        operator: str | None = None,
        operator_options: Mapping[str, Any] | None = None,
        history: bool = True,
        spread: str | None = None,
        nodes: int | str | None = None,
        spread_options: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Begin a query with the next step: its answers are the results whose last row arrives from then on.

        The rows that arrive meet those that running queries hold of the same join, unless `history` is False: then only
        one another. The event `QueryAdded` says what the query sees, and from when its answers are what they would be
        had it run forever. `operator` names a `UserOperator` on top as `package.module:Class`, made with
        `operator_options`. On a checkpoint the results go to a `sink` as well, without one into the checkpoint; in an
        engine a sink may be a function, which gets Arrow tables.

        A `spread` such as `psp_d`, or `auto`, runs a join of any condition over RANGE windows on so many `nodes`;
        `auto` has the cost model say how many.
        """
        above, over = operator_options or {}, spread_options or {}
        query = AddQuery(name, sql, plan, None, operator, above, history, spread, nodes, over)
        return self._add(query.allowed(), sink)

    def declare_query(self, declared: QuerySpec) -> Receipt:
        """Begin a query as a job file declares it."""
        return self._add(AddQuery.of(declared).allowed(), declared.sink)

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
        moved = Migrate(name, plan or "", strategy, options, operator, operator_options or {}, together)
        return self._command(moved.allowed())

    change_query = gives(ChangeQuery, name="query")

    drop_query = gives(DropQuery, name="query")

    drop_stream = gives(DropStream, name="stream")

    drop_table = gives(DropTable, name="table")

    def spread(
        self, query: str, scheme: str, nodes: int | str | None = None, *, plan: str | None = None, **options: Any
    ) -> Receipt:
        """Spread a running query over so many nodes by another scheme, beginning with the next step; no answer changes.

        `off` runs it in lanes again; `auto` nodes are as many as the cost model finds best. Its base rows are listed
        where they are needed then, and it keeps its probing orders, or gets those of a `plan`. `options` are those of
        the scheme: `master`, `segment`, `copies`, `count_bound` or `objective`; and `relocation`: `aggressive`, unless
        you say, which lists rows at their new nodes at once, or `passive`, by which new rows alone go by the new nodes
        and the others run out where they lie.
        """
        return self._command(Spread(query, scheme, nodes, options, plan or ""))

    rescale = gives(Rescale)

    reshare = gives(Reshare)

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
        **options: float | str,
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

    approve = gives(Approve)

    reject = gives(Reject)

    pin = gives(Pin)

    unpin = gives(Unpin)

    def command(self, command: StepCommand) -> Receipt:
        """Give a command as a value: one that another package defines, or one of `midstream.commands`."""
        return self._command(command)

    @abstractmethod
    def _add(self, query: AddQuery, sink: Any) -> Receipt:
        """Check a query that writes to a sink as users mean it, and give it to the next step."""

    @abstractmethod
    def _command(self, command: StepCommand) -> Receipt:
        """Check a command and give it to the next step."""
