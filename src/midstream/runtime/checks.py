"""Checks of the contracts between a lane and what runs on it; off unless turned on, as tests do.

They cost time on every insert, so production runs without them; what they hold is what the docstrings of `Lane` and
`JoinState` promise.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from midstream.state.sorted_run import SortedRun
from midstream.state.specs import StateSpec

_ON = ContextVar("midstream_checks", default=False)  # Tests put another one here, which is on in every thread.


class ContractError(AssertionError):
    """A contract of the lane is broken: a fault of an operator or a strategy, never of a user."""


def are_on() -> bool:
    """Return whether contracts are checked."""
    return _ON.get()


@contextmanager
def turned_on(on: bool = True) -> Iterator[None]:
    """Check contracts within this block, or do not.

    >>> with turned_on():
    ...     are_on()
    True
    """
    token = _ON.set(on)
    try:
        yield
    finally:
        _ON.reset(token)


def require(holds: bool, contract: str) -> None:
    """Raise unless a contract holds; call this only where checks are on."""
    if not holds:
        raise ContractError(contract)


def check_run(spec: StateSpec, run: SortedRun) -> None:
    """Raise unless a run may be part of a state: its sources and clocks, one length, codes that ascend."""
    held, where = run.combinations, f"state {spec.id}"
    require(set(held.refs) == set(spec.labels), f"{where} takes combinations of its own sources, not of {held.labels}")
    require(set(held.valid_to) == set(spec.clocks), f"{where} takes lifetimes on its clocks, not {set(held.valid_to)}")
    columns = (*held.refs.values(), *held.valid_from.values(), *held.valid_to.values())
    require(len({len(words) for words in columns}) == 1, f"{where} takes columns of one length")
    if spec.index == "scan":
        require(run.codes is None, f"{where} is not sorted, so its runs have no codes")
    elif run.codes is None:
        require(not len(run), f"{where} is sorted: its runs have codes")
    else:
        require(len(run.codes) == len(run), f"{where} takes a code for each combination")
        # NaN sorts last and compares with nothing.
        require(not (run.codes[1:] < run.codes[:-1]).any(), f"{where} takes runs whose codes ascend")
