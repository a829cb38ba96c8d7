"""A distance join of three streams on Spark, spread over nodes: `python examples/near_flights.py`.

Who left EWR, JFK and LGA within so many minutes of each other for places within so many kilometres of each other? No
equality ties these streams, so Spark's own join refuses them and no key can share out the work. The distance is a
predicate of this script's own, asked by name in SQL; a spread shares the work out over nodes all the same. The flights
are those of 2013, and DuckDB answers the same question over all of them in the end.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import midstream as ms
from midstream.demo.flights import Replay, in_26_files, prepare, read_streams
from midstream.explain import explain

AIRPORTS = ("EWR", "JFK", "LGA")

NEAR = """
    SELECT EWR.flight AS ewr, JFK.flight AS jfk, LGA.flight AS lga,
           EWR.dest AS ewr_dest, JFK.dest AS jfk_dest, LGA.dest AS lga_dest
    FROM EWR, JFK, LGA
    WHERE great_circle(EWR.lat, EWR.lon, JFK.lat, JFK.lon, {km})
      AND great_circle(JFK.lat, JFK.lon, LGA.lat, LGA.lon, {km})
      AND great_circle(LGA.lat, LGA.lon, EWR.lat, EWR.lon, {km}) AND EWR.dest <> LGA.dest
    WINDOW {minutes} MINUTES"""

EXPECTED = """
    CREATE MACRO km(a, o, b, p) AS 2 * 6371 * asin(sqrt(pow(sin(radians(b - a) / 2), 2)
        + cos(radians(a)) * cos(radians(b)) * pow(sin(radians(p - o) / 2), 2)));
    CREATE TABLE pairs AS SELECT J.flight AS jfk, L.flight AS lga, J.dest AS jfk_dest, L.dest AS lga_dest,
        J.lat, J.lon, L.lat AS lga_lat, L.lon AS lga_lon, greatest(J.ts, L.ts) AS latest, least(J.ts, L.ts) AS earliest
        FROM JFK J JOIN LGA L ON L.ts BETWEEN J.ts - INTERVAL {minutes} MINUTE AND J.ts + INTERVAL {minutes} MINUTE
        WHERE km(J.lat, J.lon, L.lat, L.lon) <= {km};
    CREATE TABLE expected AS SELECT E.flight AS ewr, P.jfk, P.lga, E.dest AS ewr_dest, P.jfk_dest, P.lga_dest
        FROM EWR E JOIN pairs P
            ON E.ts BETWEEN P.latest - INTERVAL {minutes} MINUTE AND P.earliest + INTERVAL {minutes} MINUTE
        WHERE E.dest <> P.lga_dest AND km(E.lat, E.lon, P.lat, P.lon) <= {km}
          AND km(E.lat, E.lon, P.lga_lat, P.lga_lon) <= {km}"""


def great_circle(lat: pa.Array, lon: pa.Array, lat2: pa.Array, lon2: pa.Array, most: pa.Array) -> Any:
    """Whether places lie at most so many kilometres apart, by the haversines of their degrees; NULL is near nothing."""
    a, o, b, p = (np.radians(column.to_numpy(zero_copy_only=False)) for column in (lat, lon, lat2, lon2))
    chord = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin((p - o) / 2) ** 2
    return 2 * 6371 * np.arcsin(np.sqrt(chord)) <= most.to_numpy()


def run(session: Any, folder: Path, sql: str, spread: str, nodes: int | str) -> None:
    """Run the job until the flights are used up."""
    ms.predicate("great_circle", great_circle, "DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE", "DOUBLE")
    job = ms.Job(session, checkpoint=folder / "checkpoint")
    for airport in AIRPORTS:
        files = str(folder / airport)
        schema = session.read.parquet(files).schema
        frame = session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(files)
        job.stream(airport, frame, timestamp="ts", lateness="1 hour")
    job.query("near", sql, sink=ms.sinks.files(folder / "near"), spread=spread, nodes=nodes)
    job.start(trigger={"availableNow": True}).await_termination()


def judged(replays: dict[str, Replay], folder: Path, km: int, minutes: int) -> tuple[int, int]:
    """How many answers DuckDB has over the whole input, and how many rows only one of the two has."""
    with duckdb.connect() as database:
        for airport, replay in replays.items():
            database.execute(f"CREATE TABLE {airport} AS FROM read_parquet('{replay.folder}/*.parquet')")
        database.execute(EXPECTED.format(km=km, minutes=minutes))
        database.execute(f"CREATE TABLE found AS FROM read_parquet('{folder}/near/**/*.parquet', hive_partitioning=0)")
        wrong = "(FROM expected EXCEPT ALL FROM found) UNION ALL (FROM found EXCEPT ALL FROM expected)"
        counts = [database.execute(f"SELECT count(*) FROM ({rows})").fetchone() for rows in ("FROM expected", wrong)]
        expected, differing = (int(count[0]) for count in counts if count is not None)
        return expected, differing


def main() -> int:
    """Replay the first weeks of the year, show the nodes, and compare the answers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("build/near_flights"), help="default: %(default)s")
    parser.add_argument("--weeks", type=int, default=16, help="how much is replayed; default: %(default)s")
    parser.add_argument("--km", type=int, default=75, help="how near the places lie; default: %(default)s")
    parser.add_argument("--minutes", type=int, default=30, help="how near the departures; default: %(default)s")
    parser.add_argument("--spread", default="psp_d", help="see docs/spreading.md; default: %(default)s")
    parser.add_argument("--nodes", default="4", help="a number, or auto; default: %(default)s")
    options = parser.parse_args()
    from midstream.spark.session import local_session

    shutil.rmtree(options.folder, ignore_errors=True)
    streams = read_streams()
    replays = prepare({name: streams[name] for name in AIRPORTS}, options.folder, in_26_files(options.weeks))
    session = local_session("near flights")
    try:
        nodes = options.nodes if options.nodes == "auto" else int(options.nodes)
        sql = NEAR.format(km=options.km, minutes=options.minutes)
        run(session, options.folder, sql, options.spread, nodes)
        print(explain(ms.open(options.folder / "checkpoint").manifest(), "near"))
    finally:
        session.stop()
    rows, wrong = judged(replays, options.folder, options.km, options.minutes)
    print(f"{rows:,} answers" + (f", {wrong:,} NOT as DuckDB has them" if wrong else ", all as DuckDB has them"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
