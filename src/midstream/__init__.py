"""midstream: change the plan of a running streaming join without stopping it, every answer exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from midstream.pipeline import processor as processor  # It must be the first to load numpy.

# isort: split
from midstream import sinks
from midstream.embedded import Engine
from midstream.migration.strategy_contract import strategies
from midstream.model import events
from midstream.model.allowed import allow_operators, allow_sources
from midstream.model.errors import (
    CheckpointError,
    HeldCheckpointError,
    InputError,
    InternalError,
    LanguageError,
    LostCheckpointError,
    MidstreamError,
    PlanError,
    QueryError,
    ReadError,
    SinkError,
    SparkError,
    StrategyError,
    UndeliveredError,
    WriteError,
)
from midstream.model.extras import from_extra
from midstream.operators.user_operator import UserOperator
from midstream.pipeline.opened import OpenCheckpoint
from midstream.sql.declare_predicate import predicate

if TYPE_CHECKING:
    from midstream.spark.job import Job
    from midstream.spark.result_frames import results_stream

open = OpenCheckpoint.of
"""A checkpoint, by a path or a URL, to look at or to go back: see `midstream.pipeline.opened.OpenCheckpoint`."""

__version__ = "0.2.0"

__all__ = [
    "CheckpointError",
    "Engine",
    "HeldCheckpointError",
    "InputError",
    "InternalError",
    "Job",
    "LanguageError",
    "LostCheckpointError",
    "MidstreamError",
    "PlanError",
    "QueryError",
    "ReadError",
    "SinkError",
    "SparkError",
    "StrategyError",
    "UndeliveredError",
    "UserOperator",
    "WriteError",
    "allow_operators",
    "allow_sources",
    "events",
    "open",
    "predicate",
    "results_stream",
    "sinks",
    "strategies",
]

_OF_SPARK = {"Job": "midstream.spark.job", "results_stream": "midstream.spark.result_frames"}


def __getattr__(name: str) -> Any:
    """Import on first use, because it needs Spark and the embedded engine does not."""
    import importlib

    if name in _OF_SPARK:
        with from_extra("spark", f"midstream.{name}"):
            return getattr(importlib.import_module(_OF_SPARK[name]), name)
    raise AttributeError(f"module 'midstream' has no attribute {name!r}")


def __dir__() -> list[str]:
    """What is of use, also where it is not imported yet; not what this file itself has imported."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
