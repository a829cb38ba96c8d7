"""NEXMark and more of the language on Spark, killed at every named point of a step: all answers are DuckDB's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession

from midstream.pipeline.crash_points import POINTS
from tests.embedded.nexmark_oracle import BOTH, COMERS, SQL, windowed
from tests.embedded.test_nexmark import plain
from tests.spark.drive import Place, finish, read_all
from tests.spark.forked_drivers import ForkedDrivers
from tests.spark.nexmark_job import MORE, OF_FILES, SIDE, TABLES, feed, the_job

TENS = "INTERVAL 10 SECONDS"
NEAR = "abs(epoch_us({0}.ts) - epoch_us({1}.ts)) <= 10000000"
UNSOLD = f"a.id = b.auction AND b.price > 5000000 AND {NEAR.format('a', 'b')}"
SELLS = f"a.seller = p.id AND {NEAR.format('a', 'p')}"
HOPS = """SELECT category, seller, initial_bid, unnest(generate_series(first, ts, INTERVAL 5 SECONDS)) AS s
  FROM (SELECT *, time_bucket(INTERVAL 5 SECONDS, ts) - INTERVAL 5 SECONDS AS first FROM auction)"""

MORE_SQL = {
    "unsold": f"""SELECT a.id, a.seller, b.bidder, b.price FROM auction a, bid b WHERE {UNSOLD} UNION ALL
      SELECT a.id, a.seller, NULL, NULL FROM auction a WHERE NOT EXISTS (SELECT 1 FROM bid b WHERE {UNSOLD})
        AND a.ts + {TENS} < {BOTH}""",
    "silent": f"""SELECT p.id, p.name FROM person p WHERE NOT EXISTS (SELECT 1 FROM auction a WHERE {SELLS})
      AND p.ts + {TENS} < {COMERS}""",
    "merchants": f"""SELECT id, name FROM (SELECT p.id, p.name, min(greatest(p.ts, a.ts)) AS first
        FROM person p, auction a WHERE {SELLS} GROUP BY ALL) WHERE first < {COMERS}""",
    "offers": windowed(
        "auction, list(price ORDER BY price DESC), string_agg(channel, ' ' ORDER BY channel), "
        "list(price ORDER BY ts, price)[1], list(price ORDER BY ts, price)[-1], w",
        "auction",
    )
    + " HAVING count(*) > 2",
    "letters": windowed("value[1], count(*), w + INTERVAL 10 SECONDS", "value[1]").replace(
        "FROM bid)", "FROM bid JOIN side_input ON key = auction % 10000)", 1
    ),
    "busiest": f"""SELECT * FROM (SELECT auction, num, e, rank() OVER (PARTITION BY e ORDER BY num DESC) AS place
        FROM ({windowed("auction, count(*) AS num, w + INTERVAL 10 SECONDS AS e", "auction")}))
      WHERE place BETWEEN 1 AND 3 AND num > 1""",
    "spread": f"""SELECT category, count(DISTINCT seller), stddev(initial_bid), s + {TENS} AS e FROM ({HOPS})
      WHERE s + {TENS} <= (SELECT max(ts) FROM auction) GROUP BY category, s""",
}
CRASHES = [*((point, 1) for point in POINTS), ("amid_tasks", 2), ("before_manifest", 2), ("before_sink", 3)]
"""Step 1 begins a migration, step 2 a rescale."""


def rows(found: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """As a multiset of plain values."""
    return Counter(tuple(tuple(v) if isinstance(v, list) else plain(v) for v in row) for row in found)


@pytest.mark.timeout(1200)
def test_every_form_is_exact_though_the_driver_is_killed_at_every_point(
    spark: SparkSession, drivers: ForkedDrivers, tmp_path: Path
) -> None:
    connection = duckdb.connect()
    for name, table in {**TABLES, "side_input": SIDE}.items():
        connection.register(name, table)
    feed(tmp_path)
    for point, step in CRASHES:
        drivers.kill("tests.spark.nexmark_job", tmp_path, f"{point}:{step}")
    finish(the_job(spark, tmp_path))
    place = Place(tmp_path)
    assert place.manifest().lanes == 3
    asked = {**{name: SQL[query] for name, query in OF_FILES.items()}, **MORE_SQL}
    assert asked.keys() == {*OF_FILES, *MORE}
    for name, sql in asked.items():
        expected = rows(connection.execute(sql).fetchall())
        found = rows([tuple(row.values()) for row in read_all(place.answers(name)).to_pylist()])
        assert len(expected) > 3 and found == expected, name
