"""A function as a sink, as Spark's `foreachBatch` has it: it is given each step's results as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from midstream.spark.sinks.contract import Sink, StagedStep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SinkFunction = Callable[["DataFrame", int, str], Any]


@dataclass(frozen=True)
class FunctionSink(Sink):
    """A function of DataFrame, step and query, which must be idempotent in the last two.

    No manifest can hold a function, so a job that is started again must be given it again.
    """

    function: SinkFunction

    def to_json(self) -> dict[str, Any]:
        """What a manifest can say of it: its name."""
        name = getattr(self.function, "__qualname__", None) or type(self.function).__qualname__
        return {"function": f"{getattr(self.function, '__module__', '')}.{name}"}

    def write(self, staged: StagedStep) -> None:
        """Call the function."""
        self.function(staged.frame(), staged.step, staged.name)
