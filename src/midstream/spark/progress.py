"""What Spark itself tells of a micro-batch once it is over: what it took to ask the sources, and what waits there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql.streaming.query import StreamingQuery

_ASKING = ("latestOffset", "getOffset", "getBatch")
_WAITING = "maxOffsetsBehindLatest", "avgOffsetsBehindLatest"


class BatchProgress(NamedTuple):
    """A micro-batch: its number, seconds by phase around what `foreachBatch` did, and the backlog by stream."""

    number: int
    phases: Mapping[str, float]
    backlog: Mapping[str, int]


def last_progress(query: StreamingQuery, streams: Sequence[str]) -> BatchProgress | None:
    """Read what Spark reports of the last trigger of a query over the union of `streams`; None where there was none.

    One call to the JVM: `lastProgress` of PySpark takes a hundred.
    """
    told: Any = query._jsq.lastProgress()
    return None if told is None else progress_of(json.loads(told.json()), streams)


def progress_of(value: Mapping[str, Any], streams: Sequence[str]) -> BatchProgress:
    """Read Spark's JSON of a trigger. Only sources that know what waits there, as Kafka does, report it.

    >>> took = {"latestOffset": 20, "getBatch": 10, "addBatch": 300, "triggerExecution": 400}
    >>> progress_of({"batchId": 7, "durationMs": took, "sources": []}, ["A"])
    BatchProgress(number=7, phases={'listing': 0.03, 'spark': 0.07}, backlog={})
    """
    took = value.get("durationMs", {})
    listing = sum(took.get(name, 0) for name in _ASKING)
    around = max(0, took.get("triggerExecution", 0) - took.get("addBatch", 0) - listing)
    backlog: dict[str, int] = {}
    sources = value.get("sources", [])
    names = streams if len(streams) == len(sources) else [""] * len(sources)
    for name, source in zip(names, sources, strict=True):
        metrics = source.get("metrics") or {}
        found = next((metrics[key] for key in _WAITING if key in metrics), None)
        if found is not None:
            backlog[name] = backlog.get(name, 0) + round(float(found))
    return BatchProgress(int(value["batchId"]), {"listing": listing / 1e3, "spark": around / 1e3}, backlog)
