"""Frozen values that are made quickly are those that `dataclasses` makes."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, field, replace
from functools import cached_property

import pytest

from midstream.model.manifest import Manifest
from midstream.model.revised import quickly_made, revised


@quickly_made
@dataclass(frozen=True)
class Made:
    name: str
    parts: dict[str, int] = field(default_factory=dict)
    count: int = 7
    known: list[int] = field(default_factory=list, init=False, compare=False)

    @cached_property
    def twice(self) -> int:
        return 2 * self.count


def test_each_value_that_is_not_given_is_the_default_and_no_two_share_one_that_is_made() -> None:
    one, other = Made("a"), Made(name="a")
    assert one == other == replace(one) == pickle.loads(pickle.dumps(one)) and repr(one) == repr(other)
    assert one.parts == {} and one.parts is not other.parts and one.count == 7
    assert (Made("a", count=1).count, Made("a", {"x": 1}, 2).parts) == (1, {"x": 1})


@pytest.mark.parametrize("given", [(), ("a", {}, 1, 2)])
def test_too_few_and_too_many_values_are_refused(given: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        Made(*given)  # type: ignore[arg-type]


def test_what_is_not_given_is_made_for_each_value_and_cannot_be_given() -> None:
    assert Made("a").known == [] and Made("a").known is not Made("a").known
    with pytest.raises(TypeError):
        Made("a", known=[1])  # type: ignore[call-arg]


def test_a_class_that_does_something_after_its_fields_are_set_is_refused() -> None:
    class Checked:
        def __post_init__(self) -> None:
            raise ValueError

    with pytest.raises(AssertionError):
        quickly_made(dataclass(frozen=True)(Checked))


def test_a_value_stays_as_it_was_made() -> None:
    with pytest.raises(FrozenInstanceError):
        Made("a").count = 1  # type: ignore[misc]


def test_what_a_value_remembers_does_not_go_into_the_one_that_is_revised() -> None:
    one = Made("a")
    assert one.twice == 14
    assert revised(one, count=1).twice == 2 and revised(one, count=1) == Made("a", count=1)


def test_what_a_manifest_remembers_does_not_leave_the_process() -> None:
    one = Manifest(step=3)
    one.__dict__["_arrangement"] = lambda: 0
    assert pickle.loads(pickle.dumps(one)) == Manifest(step=3)
