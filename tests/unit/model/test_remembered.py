"""What is remembered is bounded, and forgotten by whichever thread comes first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from midstream.model.frozen import make_room


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


def test_what_another_thread_has_forgotten_meanwhile_is_no_error() -> None:
    found = ForgottenMeanwhile({1: None, 2: None})
    make_room(found, 2)
    assert [*dict.keys(found)] == [2]
