"""A function as a sink, as Spark's `foreachBatch` has it: it is given the results of one step after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from midstream.sinks.contract import Sink, StagedStep

SinkFunction = Callable[[Any, int, str], Any]
"""Called with the results of a step (a DataFrame on Spark, an Arrow table embedded), its number and the query."""


@dataclass(frozen=True)
class FunctionSink(Sink):
    """A function that takes the results, the step and the query, and is idempotent for each step and query.

    The results are a DataFrame in a job on Spark, and an Arrow table in the embedded engine. A manifest cannot contain
    a function, so the program passes the function again at each start.
    """

    function: SinkFunction

    def to_json(self) -> dict[str, Any]:
        """Return the function's name, because a manifest cannot contain the function."""
        name = getattr(self.function, "__qualname__", None) or type(self.function).__qualname__
        return {"function": f"{getattr(self.function, '__module__', '')}.{name}"}

    def write(self, staged: StagedStep) -> None:
        """Call the function with the results, the step and the query."""
        self.function(staged.frame(), staged.step, staged.name)
