"""The acts of the demo: a question, how midstream answers it while its plan changes, and how DuckDB answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from midstream.demo.flights import Span, around_june, from_january, in_26_files

LATENESS = "1 hour"

ONE_NODE = "one_lane"
"""The spread that an act begins with whose query is spread over nodes."""


def kilometres(lat: str, lon: str, other_lat: str, other_lon: str) -> str:
    """Write the distance of two places along the great circle, in a database's SQL."""
    across = f"cos(radians({lat})) * cos(radians({other_lat})) * pow(sin(radians({other_lon} - {lon}) / 2), 2)"
    return f"2 * 6371 * asin(sqrt(pow(sin(radians({other_lat} - {lat}) / 2), 2) + {across}))"


@dataclass(frozen=True)
class Act:
    """A query with the plan it begins with, the plan it is carried to, and the same question put to a database.

    Where no `new_plan` is named, the optimizer looks after the query; where a `spread` is, the query begins at one node
    and is spread over so many `nodes` instead. `expected` is SQL over tables named like the streams, whose `ts` is in
    microseconds; `why` says what the change is good for. Both answers call the result's time `moment`. `span` gives
    what of the year is replayed in a demo of so many weeks.
    """

    name: str
    question: str
    why: str
    streams: tuple[str, ...]
    sql: str
    old_plan: str
    new_plan: str | None
    expected: str
    summary: str
    span: Callable[[int], Span] = from_january
    spread: str = ""
    nodes: int = 0

    @property
    def is_optimized(self) -> bool:
        """Whether the optimizer looks after the query."""
        return self.new_plan is None and not self.spread

    @property
    def begins(self) -> str:
        """How the query is evaluated at first, as the demo calls it."""
        return ONE_NODE if self.spread else self.old_plan


LATE_TOGETHER = Act(
    name="late_together",
    question="To which destinations did flights from all three airports leave late within the same half hour?",
    why="JFK and LGA share fewer late flights to one place than EWR and JFK do: joined first, they leave less to join.",
    streams=("EWR", "JFK", "LGA"),
    sql="""
        SELECT EWR.dest, EWR.carrier AS ewr_carrier, EWR.flight AS ewr_flight, EWR.dep_delay AS ewr_delay,
               JFK.carrier AS jfk_carrier, JFK.flight AS jfk_flight, JFK.dep_delay AS jfk_delay,
               LGA.carrier AS lga_carrier, LGA.flight AS lga_flight, LGA.dep_delay AS lga_delay, _ts AS moment
        FROM EWR, JFK, LGA
        WHERE EWR.dest = JFK.dest AND JFK.dest = LGA.dest
          AND EWR.dep_delay > 0 AND JFK.dep_delay > 0 AND LGA.dep_delay > 0
        WINDOW 30 MINUTES""",
    old_plan="((EWR JFK) LGA)",
    new_plan="((JFK LGA) EWR)",
    expected="""
        WITH pairs AS (
            SELECT JFK.*, LGA.carrier AS lga_carrier, LGA.flight AS lga_flight, LGA.dep_delay AS lga_delay,
                   greatest(JFK.ts, LGA.ts) AS latest, least(JFK.ts, LGA.ts) AS earliest
            FROM JFK JOIN LGA ON JFK.dest = LGA.dest
            WHERE JFK.dep_delay > 0 AND LGA.dep_delay > 0
              AND greatest(JFK.ts, LGA.ts) - least(JFK.ts, LGA.ts) <= 1_800_000_000)
        SELECT EWR.dest, EWR.carrier AS ewr_carrier, EWR.flight AS ewr_flight, EWR.dep_delay AS ewr_delay,
               pairs.carrier AS jfk_carrier, pairs.flight AS jfk_flight, pairs.dep_delay AS jfk_delay,
               lga_carrier, lga_flight, lga_delay, greatest(EWR.ts, latest) AS moment
        FROM EWR JOIN pairs ON EWR.dest = pairs.dest
        WHERE EWR.dep_delay > 0
          AND greatest(EWR.ts, latest) - least(EWR.ts, earliest) <= 1_800_000_000""",
    summary="SELECT dest AS destination, count(*) AS times FROM result GROUP BY dest ORDER BY times DESC, dest LIMIT 5",
)

LOST_IN_WEATHER = Act(
    name="lost_in_weather",
    question="Which flights left JFK in rain or strong wind and lost yet more time on their way?",
    why="Weather seldom is bad: joined first, it leaves few departures to be looked up among all arrivals.",
    streams=("JFK", "arrivals", "weather"),
    sql="""
        SELECT D.carrier, D.flight, D.tailnum, D.dest, D.dep_delay, A.arr_delay, W.wind_speed, W.precip, _ts AS moment
        FROM JFK D [RANGE 12 HOURS], arrivals A [RANGE 12 HOURS], weather W [RANGE 12 HOURS]
        WHERE D.tailnum = A.tailnum AND D.flight = A.flight AND D.dest = A.dest
          AND D.origin = W.origin AND D.hour = W.hour
          AND (W.precip > 0 OR W.wind_speed > 20) AND A.arr_delay > D.dep_delay""",
    old_plan="((D A) W)",
    new_plan="((D W) A)",
    expected="""
        SELECT D.carrier, D.flight, D.tailnum, D.dest, D.dep_delay, A.arr_delay, W.wind_speed, W.precip,
               greatest(D.ts, A.ts, W.ts) AS moment
        FROM JFK D
        JOIN arrivals A ON D.tailnum = A.tailnum AND D.flight = A.flight AND D.dest = A.dest
        JOIN weather W ON D.origin = W.origin AND D.hour = W.hour
        WHERE (W.precip > 0 OR W.wind_speed > 20) AND A.arr_delay > D.dep_delay
          AND greatest(D.ts, A.ts, W.ts) - least(D.ts, A.ts, W.ts) <= 43_200_000_000""",
    summary="""SELECT dest AS destination, count(*) AS flights, round(avg(arr_delay - dep_delay), 1) AS minutes_lost
               FROM result GROUP BY dest ORDER BY flights DESC, dest LIMIT 5""",
)

LATE_IN_THE_HEAT = Act(
    name="late_in_the_heat",
    question="Over 6 h 40 min late from LGA: which flights of that airline go there from JFK in weeks with hot hours?",
    why="In winter joining departures with hot hours first leaves nothing to join; in summer it leaves nearly all.",
    streams=("JFK", "LGA", "weather"),
    sql="""
        SELECT D.dest, D.carrier, D.flight, D.dep_delay, L.flight AS lga_flight, L.dep_delay AS lga_delay, W.temp,
               _ts AS moment
        FROM JFK D, LGA L, weather W
        WHERE D.dest = L.dest AND D.carrier = L.carrier AND D.origin = W.origin
          AND L.dep_delay > 400 AND W.temp > 80
        WINDOW 21 DAYS""",
    old_plan="((D W) L)",
    new_plan=None,
    expected="""
        WITH pairs AS MATERIALIZED (
            SELECT D.*, L.flight AS lga_flight, L.dep_delay AS lga_delay,
                   greatest(D.ts, L.ts) AS latest, least(D.ts, L.ts) AS earliest
            FROM JFK D JOIN LGA L ON D.dest = L.dest AND D.carrier = L.carrier
            WHERE L.dep_delay > 400 AND greatest(D.ts, L.ts) - least(D.ts, L.ts) <= 1_814_400_000_000)
        SELECT pairs.dest, pairs.carrier, pairs.flight, pairs.dep_delay, lga_flight, lga_delay, W.temp,
               greatest(latest, W.ts) AS moment
        FROM pairs JOIN weather W ON pairs.origin = W.origin
        WHERE W.temp > 80 AND greatest(latest, W.ts) - least(earliest, W.ts) <= 1_814_400_000_000""",
    summary="""SELECT dest AS destination, carrier, count(DISTINCT (flight, dep_delay)) AS flights, max(temp) AS hottest
               FROM result GROUP BY ALL ORDER BY flights DESC, dest, carrier LIMIT 5""",
    span=around_june,
)

NEAR_KM, HALF_HOUR = 75, 1_800_000_000

NEAR_TOGETHER = Act(
    name="near_together",
    question="From all three airports within half an hour: who left for places so near that either would have done?",
    why="No equality ties these streams, so there is no key to share the work by: four nodes do by time what one did.",
    streams=("EWR", "JFK", "LGA"),
    sql=f"""
        SELECT EWR.dest AS ewr_dest, EWR.carrier AS ewr_carrier, EWR.flight AS ewr_flight,
               JFK.dest AS jfk_dest, JFK.carrier AS jfk_carrier, JFK.flight AS jfk_flight,
               LGA.dest AS lga_dest, LGA.carrier AS lga_carrier, LGA.flight AS lga_flight, _ts AS moment
        FROM EWR, JFK, LGA
        WHERE within_km(EWR.lat, EWR.lon, JFK.lat, JFK.lon, {NEAR_KM})
          AND within_km(JFK.lat, JFK.lon, LGA.lat, LGA.lon, {NEAR_KM})
          AND within_km(LGA.lat, LGA.lon, EWR.lat, EWR.lon, {NEAR_KM})
          AND (EWR.dest <> JFK.dest OR JFK.dest <> LGA.dest)
        WINDOW 30 MINUTES""",
    old_plan="[EWR: JFK LGA | JFK: LGA EWR | LGA: JFK EWR]",
    new_plan=None,
    expected=f"""
        WITH placed AS (  -- Half an hour reaches from any half hour into the one before and the one after.
            SELECT *, unnest([ts // {HALF_HOUR} - 1, ts // {HALF_HOUR}, ts // {HALF_HOUR} + 1]) AS near FROM JFK),
        pairs AS (
            SELECT JFK.*, LGA.dest AS lga_dest, LGA.carrier AS lga_carrier, LGA.flight AS lga_flight,
                   LGA.lat AS lga_lat, LGA.lon AS lga_lon,
                   greatest(JFK.ts, LGA.ts) AS latest, least(JFK.ts, LGA.ts) AS earliest
            FROM placed JFK JOIN LGA ON JFK.near = LGA.ts // {HALF_HOUR}
            WHERE abs(JFK.ts - LGA.ts) <= {HALF_HOUR}
              AND {kilometres("JFK.lat", "JFK.lon", "LGA.lat", "LGA.lon")} <= {NEAR_KM})
        SELECT EWR.dest AS ewr_dest, EWR.carrier AS ewr_carrier, EWR.flight AS ewr_flight,
               pairs.dest AS jfk_dest, pairs.carrier AS jfk_carrier, pairs.flight AS jfk_flight,
               lga_dest, lga_carrier, lga_flight, greatest(EWR.ts, latest) AS moment
        FROM (SELECT * REPLACE (unnest([ts // {HALF_HOUR} - 1, ts // {HALF_HOUR}, ts // {HALF_HOUR} + 1]) AS near)
              FROM pairs) pairs
        JOIN EWR ON pairs.near = EWR.ts // {HALF_HOUR}
        WHERE greatest(EWR.ts, latest) - least(EWR.ts, earliest) <= {HALF_HOUR}
          AND (EWR.dest <> pairs.dest OR pairs.dest <> lga_dest)
          AND {kilometres("EWR.lat", "EWR.lon", "pairs.lat", "pairs.lon")} <= {NEAR_KM}
          AND {kilometres("EWR.lat", "EWR.lon", "lga_lat", "lga_lon")} <= {NEAR_KM}""",
    summary="""SELECT ewr_dest AS from_ewr, jfk_dest AS from_jfk, lga_dest AS from_lga, count(*) AS times
               FROM result GROUP BY ALL ORDER BY times DESC, from_ewr, from_jfk, from_lga LIMIT 5""",
    span=in_26_files,
    spread="psp_d",
    nodes=4,
)

ACTS = (LATE_TOGETHER, LOST_IN_WEATHER, LATE_IN_THE_HEAT, NEAR_TOGETHER)
