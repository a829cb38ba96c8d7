"""What is remembered is bounded, and forgotten by whichever thread comes first."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from midstream.admission import admit
from midstream.admission.admit import nothing_of
from midstream.model.frozen import make_room
from midstream.model.schema import StreamSchema


class ForgottenMeanwhile(dict[object, object]):
    """Another thread forgets the oldest entry right after it was looked for."""

    def __iter__(self) -> Iterator[object]:
        oldest = list(super().__iter__())
        self.pop(oldest[0])
        return iter(oldest)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 9])
def test_there_is_room_for_one_more_and_the_youngest_stay(most: int) -> None:
    found = {number: str(number) for number in range(4)}
    make_room(found, most)
    assert [*found] == [*range(4)][max(0, 5 - most) :]


def test_what_another_thread_has_forgotten_meanwhile_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = StreamSchema("S", pa.schema([("ts", pa.int64())]), "ts", unit="s")
    for name, most in (("_FORMS", "_MOST_FORMS"), ("_OF_STREAMS", "_REMEMBERED")):
        monkeypatch.setattr(admit, name, ForgottenMeanwhile({1: None, 2: None}))
        monkeypatch.setattr(admit, most, 2)
    assert nothing_of({"S": stream})["S"].rows.num_rows == 0
    assert admit.admit(stream, pa.table({"ts": [1]}), 0).rows.num_rows == 1
