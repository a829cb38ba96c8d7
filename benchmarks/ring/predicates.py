"""A predicate that costs something to ask: how far two places lie apart, along a great circle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import midstream as ms

DIAMETER_KM = 2 * 6371


def within_km(lat: pa.Array, lon: pa.Array, lat2: pa.Array, lon2: pa.Array, most: pa.Array) -> npt.NDArray[np.bool_]:
    """Places, in degrees, at most so many kilometres apart."""
    a, o, b, p = (np.radians(column.to_numpy(zero_copy_only=False)) for column in (lat, lon, lat2, lon2))
    chord = np.sin((b - a) / 2) ** 2 + np.cos(a) * np.cos(b) * np.sin((p - o) / 2) ** 2
    return np.asarray(DIAMETER_KM * np.arcsin(np.sqrt(chord)) <= most.to_numpy(zero_copy_only=False), np.bool_)


WITHIN_KM = ms.predicate("within_km", within_km, *["DOUBLE"] * 5)

WITHIN_KM_SQL = (
    f"{DIAMETER_KM} * asin(sqrt(pow(sin(radians({{lat2}} - {{lat}}) / 2), 2)"
    " + cos(radians({lat})) * cos(radians({lat2})) * pow(sin(radians({lon2} - {lon}) / 2), 2))) <= {most}"
)
"""The same in the words that DuckDB and Spark have in common."""
