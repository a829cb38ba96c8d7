"""Words at many places: numpy's way and Arrow's give the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from midstream.state import gather as module
from midstream.state.gather import gather, taken


@pytest.fixture(params=[1, 1 << 62], ids=["by Arrow", "by numpy"])
def _many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", request.param)


@pytest.mark.usefixtures("_many")
def test_words_are_gathered_in_any_order_also_of_a_part_of_an_array() -> None:
    words = np.arange(100, 120)
    assert gather(words, np.array([3, 0, 19])).tolist() == [103, 100, 119]
    assert gather(words[10:], np.array([9, 0])).tolist() == [119, 110]


@pytest.mark.usefixtures("_many")
def test_values_are_taken_of_a_slice_and_with_its_nulls() -> None:
    column = pa.array([1.5, None, 2.5, 3.5]).slice(1)
    assert taken(column, np.array([2, 0, 0])).to_pylist() == [3.5, None, None]
    assert taken(column, np.zeros(0, np.int64)).to_pylist() == []


@pytest.mark.usefixtures("_many")
@pytest.mark.parametrize("place", [-1, 3])
def test_a_place_outside_of_a_column_is_an_error(place: int) -> None:
    with pytest.raises(IndexError):
        taken(pa.array([1, 2, 3]), np.array([0, place]))
