"""What a user may say to a strategy: values that know their name, their default and what they accept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override


@dataclass(frozen=True)
class Option(ABC):
    """One option of a strategy; `meaning` is a line for the reader of its documentation."""

    name: str
    default: Any
    meaning: str

    def of(self, options: Mapping[str, Any]) -> Any:
        """Return the value given, or the default."""
        return options.get(self.name, self.default)

    @abstractmethod
    def wrong(self, value: object) -> str | None:
        """Return what is wrong with a value, or None."""

    @abstractmethod
    def examples(self) -> tuple[Any, ...]:
        """List values worth trying, including those at the edges; the conformance cases draw from them."""


@dataclass(frozen=True)
class Flag(Option):
    """True or false.

    >>> Flag("hold_new", False, "keep new results back").wrong("yes")
    "hold_new is true or false, not 'yes'"
    """

    @override
    def wrong(self, value: object) -> str | None:
        return None if isinstance(value, bool) else f"{self.name} is true or false, not {value!r}"

    @override
    def examples(self) -> tuple[Any, ...]:
        return (False, True)


@dataclass(frozen=True)
class Budget(Option):
    """A number of comparisons a step, `least` or more.

    >>> Budget("budget", 100, "work a step").wrong(-1)
    'budget is a number of comparisons a step, not -1'
    >>> Budget("budget", 100, "work a step", least=1).wrong(0)
    'budget is a number of comparisons a step, at least 1, not 0'
    """

    least: int = 0

    @override
    def wrong(self, value: object) -> str | None:
        if isinstance(value, bool) or not isinstance(value, int) or value < self.least:
            bound = f", at least {self.least}" if self.least else ""
            return f"{self.name} is a number of comparisons a step{bound}, not {value!r}"
        return None

    @override
    def examples(self) -> tuple[Any, ...]:
        return tuple(value for value in (0, 1, 3, 7, 20, 60, 10_000) if value >= self.least)


@dataclass(frozen=True)
class OneOf(Option):
    """One of a few words.

    >>> OneOf("purge", "watermark", "when old rows go", ("watermark", "zhu")).wrong("never")
    "purge is one of watermark, zhu, not 'never'"
    """

    words: tuple[str, ...] = ()

    @override
    def wrong(self, value: object) -> str | None:
        return None if value in self.words else f"{self.name} is one of {', '.join(self.words)}, not {value!r}"

    @override
    def examples(self) -> tuple[Any, ...]:
        return self.words


DECOMPOSE = Flag("decompose", True, "split the migration at common subplans, and move only what differs")
BACKGROUND = Budget("background", 0, "comparisons a step for completing missing states, those of the newest rows first")
