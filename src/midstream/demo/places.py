"""Where airports lie, and whether two of them lie near each other: a condition that no key stands for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import midstream as ms

EARTH_KM = 6371.0
WITHIN_KM = "within_km"

Reals = npt.NDArray[np.float64]


def within_km(lat: pa.Array, lon: pa.Array, other_lat: pa.Array, other_lon: pa.Array, most: pa.Array) -> pa.Array:
    """Tell whether places, in degrees, lie at most so many kilometres from others along the great circle (haversine).

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
