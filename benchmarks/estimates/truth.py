"""The true size of a join of some streams, by DuckDB: counts are summed up tie by tie, for joins may be astronomic."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from benchmarks.estimates.shapes import Shape, Sources, Tie
from benchmarks.estimates.streams import Rows


class Truth:
    """Streams in a database; every size is asked of it once more."""

    def __init__(self, streams: Mapping[str, Rows]) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET threads = 1")
        for name, rows in streams.items():
            self._database.register(f"rows_{name}", pa.table({c: pa.array(v) for c, v in rows.items()}))
            self._database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows_{name}')

    def size(self, shape: Shape, sources: Sources) -> float:
        """How many combinations of these streams satisfy all ties among them."""
        root = min(sources)
        (found,) = self._database.execute(f"SELECT sum(w) FROM ({_counted(shape, sources, root, None)})").fetchall()
        return float(found[0] or 0)

    def counted(self, sql: str) -> int:
        """What a query counts, every combination made."""
        (found,) = self._database.execute(sql).fetchall()
        return int(found[0])


def _counted(shape: Shape, sources: Sources, alias: str, parent: str | None) -> str:
    """The rows of a stream, each with how many combinations of those beyond it there are, as SQL."""
    joins, factors = [], ["1.0::DOUBLE"]
    for tie in shape.within(sources):
        if alias in (tie.left, tie.right):
            (other,) = {tie.left, tie.right} - {alias}
            if other == parent:
                continue
            column = tie.column or "x"
            inner = _counted(shape, sources, other, alias)
            summed = f"(SELECT {column}, sum(w) AS w FROM ({inner}) GROUP BY {column}) AS of_{other}"
            joins.append(f"JOIN {summed} ON {_searched(tie).replace(f'{other}.', f'of_{other}.')}")
            factors.append(f"of_{other}.w")
    return f'SELECT {alias}.*, {" * ".join(factors)} AS w FROM "{alias}" AS {alias} {" ".join(joins)}'


def _searched(tie: Tie) -> str:
    """The condition in a form that DuckDB searches by instead of trying all pairs."""
    if tie.column:
        return tie.sql
    return f"{tie.left}.x BETWEEN {tie.right}.x + {tie.low} AND {tie.right}.x + {tie.high}"
