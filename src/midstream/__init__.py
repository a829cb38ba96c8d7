"""midstream: change the plan of a running streaming join without stopping it, every answer exact."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from midstream import sinks
from midstream.engine import Engine
from midstream.job.opened import OpenCheckpoint
from midstream.language.declare_predicate import predicate
from midstream.migration.discovery import strategies
from midstream.model import events
from midstream.model.allowed_operators import allow_operators
from midstream.model.allowed_sources import allow_sources
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
    SinkError,
    StrategyError,
    UndeliveredError,
)
from midstream.operators.user_operator import UserOperator

if TYPE_CHECKING:
    from midstream.spark.job import Job
    from midstream.spark.results import results_stream

open = OpenCheckpoint.of
"""A checkpoint, by a path or a URL, to look at or to go back: see `midstream.job.opened.OpenCheckpoint`."""

__version__ = "0.1.0"

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
    "SinkError",
    "StrategyError",
    "UndeliveredError",
    "UserOperator",
    "allow_operators",
    "allow_sources",
    "events",
    "open",
    "predicate",
    "results_stream",
    "sinks",
    "strategies",
]


def __getattr__(name: str) -> Any:
    """What is imported when first asked for, for it needs Spark: the embedded engine does not."""
    import importlib

    if name == "Job":
        return importlib.import_module("midstream.spark.job").Job
    if name == "results_stream":
        return importlib.import_module("midstream.spark.results").results_stream
    raise AttributeError(f"module 'midstream' has no attribute {name!r}")
