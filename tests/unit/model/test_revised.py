"""Frozen values made anew with other fields."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import cached_property

from midstream.model.frozen import revised
from midstream.model.manifest import Manifest


@dataclass(frozen=True)
class Made:
    name: str
    count: int = 7

    @cached_property
    def twice(self) -> int:
        return 2 * self.count


def test_what_a_value_remembers_does_not_go_into_the_one_that_is_revised() -> None:
    one = Made("a")
    assert one.twice == 14
    assert revised(one, count=1).twice == 2 and revised(one, count=1) == Made("a", count=1)


def test_what_a_manifest_remembers_does_not_leave_the_process() -> None:
    one = Manifest(step=3)
    one.__dict__["_arrangement"] = lambda: 0
    assert pickle.loads(pickle.dumps(one)) == Manifest(step=3)
