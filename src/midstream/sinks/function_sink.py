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
    """A function of results, step and query, which must be idempotent in the last two.

    The results are a DataFrame in a job on Spark, an Arrow table where the engine is embedded.

    No manifest can hold a function, so a job that is started again must be given it again.
    """

    function: SinkFunction

    def to_json(self) -> dict[str, Any]:
        """Return what a manifest can say of the function: its name."""
        name = getattr(self.function, "__qualname__", None) or type(self.function).__qualname__
        return {"function": f"{getattr(self.function, '__module__', '')}.{name}"}

    def write(self, staged: StagedStep) -> None:
        """Call the function with the results, the step and the query."""
        self.function(staged.frame(), staged.step, staged.name)
