"""Joins of a first stream, A, with each of the others, in the words of midstream, of DuckDB and of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

from benchmarks.scenarios.base import WINDOW

HUB = "A"
BACK = f"INTERVAL {WINDOW // 1_000_000} SECONDS"


@dataclass(frozen=True)
class Near:
    """When a row of A and one of another stream belong together; `{o}` is the other one's name, `{k}` its first key.

    `duckdb` and `spark` say the same where their words differ. Spark refuses a join without an equality, so its users
    give it one: `bucket` is of a row of A, `buckets` the array of those that a row of another stream may meet.
    """

    condition: str
    duckdb: str = ""
    spark: str = ""
    bucket: str = ""
    buckets: str = ""


Streams = Mapping[str, tuple[str, ...]]
"""The keys of each stream, A first."""


def midstream_text(streams: Streams, near: Near) -> str:
    """The join as a continuous query.

    >>> midstream_text({"A": ("x",), "B": ("x",)}, Near("A.{k} = {o}.{k}"))
    'SELECT A.v, B.v AS bv FROM A, B WHERE A.x = B.x WINDOW 20 SECONDS'
    """
    conditions = " AND ".join(_named(near.condition, streams, other) for other in _others(streams))
    seconds = WINDOW // 1_000_000
    return f"SELECT {_selected(streams)} FROM {', '.join(streams)} WHERE {conditions} WINDOW {seconds} SECONDS"


def join_by_join(streams: Streams, near: Near, answer: str) -> dict[str, str]:
    """The same as a query for each join, by name: all but the first read the answers of the one before, and the last
    one is the `answer`.

    Rows are joined within a window of each other, whichever of them comes last.

    >>> texts = join_by_join({"A": ("x",), "B": ("x",), "C": ("x",)}, Near("A.{k} = {o}.{k}"), "answer")
    >>> texts["joined_1"]
    'SELECT A.v, A.x, A.ts AS ats, B.v AS bv, B.ts AS bts FROM A, B WHERE A.x = B.x WINDOW 20 SECONDS'
    >>> texts["answer"].partition(" WHERE ")[0]
    'SELECT A.v, A.bv, C.v AS cv FROM joined_1 A, C'
    """
    others, seconds = _others(streams), WINDOW // 1_000_000
    texts, before, times, known = dict[str, str](), HUB, list[str](), ["A.v"]
    for number, other in enumerate(others, start=1):
        conditions = [_named(near.condition, streams, other)]
        conditions += [f"{other}.ts <= A.{ts} + {BACK}" for ts in times]
        last, own = number == len(others), other.lower()
        carried = [f"A.{key}" for key in streams[HUB]]
        carried += ["A.ts AS ats"] if not times else [f"A.{ts}" for ts in times]
        times_of_other = [] if last else [f"{other}.ts AS {own}ts"]
        shown = [*known, *([] if last else carried), f"{other}.v AS {own}v", *times_of_other]
        texts[answer if last else f"joined_{number}"] = (
            f"SELECT {', '.join(shown)} FROM {before}{' A' if times else ''}, {other} "
            f"WHERE {' AND '.join(conditions)} WINDOW {seconds} SECONDS"
        )
        before, times, known = f"joined_{number}", [*(times or ["ats"]), f"{own}ts"], [*known, f"A.{own}v"]
    return texts


def duckdb_text(streams: Streams, near: Near) -> str:
    """The join over everything at once, where `ts` is a number of microseconds."""
    conditions = [_named(near.duckdb or near.condition, streams, other) for other in _others(streams)]
    conditions += [f"abs({one}.ts - {other}.ts) <= {WINDOW}" for one, other in combinations(streams, 2)]
    return f"SELECT {_selected(streams)} FROM {', '.join(streams)} WHERE {' AND '.join(conditions)}"


def spark_text(streams: Streams, near: Near, *, rewritten: bool) -> str:
    """The join as Spark's users write it, two streams at a time; where it is `rewritten`, by equal buckets.

    Spark lets another join follow only where a single event-time column is left: the others' are made plain ones.
    """
    tables, parts = {stream: stream for stream in streams}, list[str]()
    if rewritten and near.bucket:
        for stream in streams:
            value = near.bucket if stream == HUB else f"explode({near.buckets})"
            tables[stream] = f"{stream}_buckets"
            parts.append(f"{tables[stream]} AS (SELECT *, {value} AS bucket FROM {stream})")
    before, times = tables[HUB], ["A.ts"]
    for number, other in enumerate(_others(streams), start=1):
        conditions = ["A.bucket = {o}.bucket"] if rewritten and near.bucket else []
        conditions += [near.spark or near.condition]
        conditions += [f"{{o}}.ts BETWEEN {ts} - {BACK} AND {ts} + {BACK}" for ts in times]
        own = other.lower()
        shown = f"A.*, {other}.v AS {own}v, timestamp_micros(unix_micros({other}.ts)) AS {own}_ts"
        on = " AND ".join(_named(condition, streams, other) for condition in conditions)
        parts.append(f"joined_{number} AS (SELECT {shown} FROM {before} A JOIN {tables[other]} {other} ON {on})")
        before = f"joined_{number}"
        times.append(f"A.{own}_ts")
    values = ", ".join(["v", *(f"{other.lower()}v" for other in _others(streams))])
    together = ",\n".join(parts)
    return f"WITH {together}\nSELECT {values} FROM {before}"


def _others(streams: Streams) -> list[str]:
    return [stream for stream in streams if stream != HUB]


def _named(text: str, streams: Streams, other: str) -> str:
    return text.format(o=other, k=next(iter(streams[other]), ""))


def _selected(streams: Streams) -> str:
    return ", ".join(["A.v", *(f"{other}.v AS {other.lower()}v" for other in _others(streams))])
