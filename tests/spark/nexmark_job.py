"""NEXMark's queries and more of the language as one Spark job: `python -m tests.spark.nexmark_job FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import midstream as ms
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.demo.nexmark import generate, side_input
from midstream.model.command import Command
from midstream.spark.session import local_session
from midstream.sql.job_file import read_job_file
from tests.oracle.spec import StreamSpec
from tests.spark.drive import SHORT_LIVED, Place, finish, giving, job

TABLES: dict[str, pa.Table] = vars(generate(5_000, per_second=100))
SIDE = side_input()
STEPS = 4
FILES = Path(__file__).parents[2] / "examples" / "nexmark"

OF_FILES = {
    "q3": ("q3", "sellers"),
    "q4": ("q4", "prices"),
    **{name: ("q5", name) for name in ("counts", "most", "hot")},
    **{name: ("q6", name) for name in ("sold", "averages")},
    "q7": ("q7", "highest"),
    "q8": ("q8", "newcomers"),
    "q9": ("q9", "winning"),
    "q11": ("q11", "sessions"),
    "q13": ("q13", "enriched"),
    "q16": ("q16", "statistics"),
    "q18": ("q18", "latest"),
    "q19": ("q19", "highest"),
    "q20": ("q20", "expanded"),
    "q23": ("q23", "sales"),
}
"""What a query is called here, by job file of NEXMark and query; those of 5 and 6 are read by their names."""

MORE = {
    "unsold": "SELECT a.id, a.seller, b.bidder, b.price FROM auction [RANGE 10 SECONDS] AS a "
    "LEFT JOIN bid [RANGE 10 SECONDS] AS b ON a.id = b.auction AND b.price > 5000000",
    "silent": "SELECT p.id, p.name FROM person [RANGE 10 SECONDS] AS p "
    "WHERE NOT EXISTS (SELECT 1 FROM auction [RANGE 10 SECONDS] AS a WHERE a.seller = p.id)",
    "merchants": "SELECT p.id, p.name FROM person [RANGE 10 SECONDS] AS p "
    "WHERE p.id IN (SELECT seller FROM auction [RANGE 10 SECONDS])",
    "offers": "SELECT auction, ARRAY_AGG(price ORDER BY price DESC) AS prices, STRING_AGG(channel, ' ') AS channels, "
    "FIRST(price) AS opened, LAST(price) IGNORE NULLS AS closed, window_start FROM bid "
    "GROUP BY auction, TUMBLE(ts, INTERVAL 10 SECONDS) HAVING COUNT(*) > 2",
    "letters": "SELECT LEFT(s.value, 1) AS letter, COUNT(*) AS n, window_end FROM bid AS b "
    "JOIN side_input AS s ON s.key = b.auction % 10000 GROUP BY LEFT(s.value, 1), TUMBLE(b.ts, INTERVAL 10 SECONDS)",
    "busiest": "WITH ranked AS (SELECT auction, num, window_end, RANK() OVER (PARTITION BY window_start, window_end "
    "ORDER BY num DESC) AS place FROM (SELECT auction, COUNT(*) AS num, window_start, window_end FROM bid "
    "GROUP BY auction, TUMBLE(ts, INTERVAL 10 SECONDS)) AS c) "
    "SELECT auction, num, window_end, place FROM ranked WHERE place BETWEEN 1 AND 3 AND num > 1",
    "spread": "SELECT category, COUNT(DISTINCT seller) AS sellers, STDDEV(initial_bid) AS spread, window_end "
    "FROM auction GROUP BY category, HOP(ts, INTERVAL 5 SECONDS, INTERVAL 10 SECONDS)",
}

COMMANDS: dict[int, Command] = {1: Migrate("q23", "(b (a p))"), 2: Rescale(3)}
"""By the step that takes it."""


def queries() -> dict[str, str]:
    """All of them, by name."""
    found = {own: read_job_file(FILES / f"{file}.toml").queries[name].sql for own, (file, name) in OF_FILES.items()}
    return {**found, **MORE}


def part(table: pa.Table, step: int) -> pa.Table:
    """What comes with a step."""
    begin, end = (table.num_rows * n // STEPS for n in (step, step + 1))
    return table.slice(begin, end - begin)


def feed(root: Path) -> None:
    """Put all of the input in place."""
    for step in range(STEPS):
        for name, table in TABLES.items():
            Place(root).feed(name, step, part(table, step))


def the_job(spark: SparkSession, root: Path) -> ms.Job:
    """The job, the same whenever it is started."""
    streams = [StreamSpec(name, table.schema, "ts") for name, table in TABLES.items()]
    return job(spark, Place(root), streams, queries(), {"q23": "((b a) p)"}, 2, {"side_input": SIDE})


def main(root: Path) -> None:
    """Run the job to its end; commands are given as the steps go by."""
    giving(root, COMMANDS)
    finish(the_job(local_session("nexmark", settings=SHORT_LIVED), root))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
