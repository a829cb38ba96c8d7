"""Open sets are found: classes of a package, and those that other distributions declare as entry points."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from midstream.model.discovery import discover
from midstream.model.errors import MidstreamError
from tests.extension import distribution

GROUP = "midstream.sounds"


class Sound(ABC):
    name: ClassVar[str]

    @abstractmethod
    def make(self) -> str: ...


SOUNDS = """
from tests.unit.model.test_discovery import Sound

class Family(Sound):
    def make(self):
        return self.name

class Moo(Family):
    name = "moo"

class Silent(Sound):
    name = "silent"
"""

MEOW = """
from sounds.cow import Family

class Meow(Family):
    name = "meow"

class Other:
    name = "other"
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with a class, its family, and one that is not finished."""
    (tmp_path / "room" / "sounds").mkdir(parents=True)
    (tmp_path / "room" / "sounds" / "__init__.py").write_text("")
    (tmp_path / "room" / "sounds" / "cow.py").write_text(SOUNDS)
    (tmp_path / "room" / "sounds" / "zoo.py").write_text("from sounds.cow import Family, Moo\n")
    monkeypatch.syspath_prepend(tmp_path / "room")
    import sounds  # type: ignore[import-not-found]

    yield sounds
    for name in [name for name in sys.modules if name.split(".")[0] in ("sounds", "meow")]:
        del sys.modules[name]


def declared(folder: Path, monkeypatch: pytest.MonkeyPatch, value: str, text: str = MEOW) -> None:
    monkeypatch.syspath_prepend(distribution(folder / "another", {GROUP: {"cat": value}}, meow=text))


def test_finished_classes_with_a_name_are_found_where_they_are_defined(room: ModuleType) -> None:
    found = discover(room, Sound, GROUP)
    assert {name: kind.make() for name, kind in found.items()} == {"moo": "moo"}


def test_other_distributions_bring_theirs(room: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(tmp_path, monkeypatch, "meow:Meow")
    assert list(discover(room, Sound, GROUP)) == ["meow", "moo"]
    assert list(discover(room, Sound, "midstream.smells")) == ["moo"]


@pytest.mark.parametrize(
    ("value", "text", "message"),
    [
        ("meow:Purr", MEOW, "meow:Purr cannot be loaded"),
        ("meow:Meow", "1 / 0", "meow:Meow cannot be loaded: division by zero"),
        ("meow:Other", MEOW, "meow:Other is not a valid Sound"),
        ("sounds.cow:Silent", MEOW, "sounds.cow:Silent is not a valid Sound"),
        ("sounds.cow:Family", MEOW, "sounds.cow:Family is not a valid Sound"),
        ("meow:Meow", MEOW.replace('"meow"', '"moo"'), "two classes of midstream.sounds are called 'moo'"),
    ],
)
def test_what_is_no_such_class_is_refused_by_place(
    room: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str, text: str, message: str
) -> None:
    declared(tmp_path, monkeypatch, value, text)
    with pytest.raises(MidstreamError) as refused:
        discover(room, Sound, GROUP)
    assert refused.value.message.startswith(message)
    assert refused.value.place == f"entry point 'cat' of {GROUP}" and refused.value.remedy
