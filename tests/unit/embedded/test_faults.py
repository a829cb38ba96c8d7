"""A step that fails by a fault of ours fails whole, says what to report, and leaves an engine that goes on."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.errors import ReadError, WriteError
from midstream.model.events import CommandRefused
from midstream.operators.window_join import WindowJoin
from midstream.runtime.lane import Lane
from midstream.sharing import membership
from midstream.state.combinations import Combinations

JOIN = "SELECT A.k FROM A, B WHERE A.k = B.k WINDOW 20 SECONDS"
WIDER = JOIN.replace("20", "30")


class Faulty:
    """A join that divides by zero in so many steps, and then does what it should."""

    def __init__(self, times: int) -> None:
        self.times, self._sound = times, WindowJoin.advance

    def advance(self, join: WindowJoin, lane: Lane) -> Combinations:
        found = self._sound(join, lane)
        self.times -= 1
        return found if self.times < 0 else found.take(slice(0, 1 // 0))


def engine() -> ms.Engine:
    """A query that has met some rows."""
    made = ms.Engine()
    for name in "AB":
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("pairs", JOIN, plan="(A B)")
    made.push({"A": rows(0, 1), "B": rows(0)})
    return made


def rows(*seconds: int) -> pa.Table:
    """Rows of one key at these seconds."""
    return pa.table({"k": [1] * len(seconds), "ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us"))})


def everything(of: ms.Engine) -> tuple[Any, ...]:
    """All that an engine is."""
    return of.manifest, of.events, dict(of._store._chunks), dict(of.late), dict(of.dead_letters)


def faulty(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Let joins fail so many times."""
    fault = Faulty(times)
    monkeypatch.setattr(WindowJoin, "advance", lambda join, lane: fault.advance(join, lane))


def test_a_step_that_fails_leaves_nothing_and_can_be_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, same = engine(), engine()
    before = everything(made)
    faulty(monkeypatch, 1)
    with pytest.raises(ms.InternalError) as failed:
        made.push({"A": rows(2), "B": rows(3)})
    assert everything(made) == before
    assert isinstance(failed.value.__cause__, ZeroDivisionError)
    found = made.push({"A": rows(2), "B": rows(3)})
    assert found == same.push({"A": rows(2), "B": rows(3)}) and found["pairs"].num_rows == 4
    assert made.manifest == same.manifest and made.events == same.events


def test_it_says_where_and_what_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    faulty(monkeypatch, 1)
    with pytest.raises(ms.InternalError) as failed:
        made.push({"A": rows(2)})
    found_text = str(failed.value)
    for part in (
        "step 1",
        "query 'pairs'",
        "window_join hash A.k = B.k",
        "ZeroDivisionError",
        "test_faults.py",
        "report",
    ):
        assert part in found_text, found_text
    assert str(pickle.loads(pickle.dumps(failed.value))) == found_text


def test_a_command_that_a_step_fails_by_is_refused_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    made.change_query("pairs", WIDER)
    made.migrate("pairs", plan="eddy(A B)", strategy="cacq")
    made.rescale(2)
    before = everything(made)
    monkeypatch.setattr("midstream.migration.cacq.Cacq.begin", lambda *_: 1 // 0)
    with pytest.raises(ms.InternalError, match="step 1, query 'pairs'"):
        made.push({"B": rows(2)})
    assert isinstance(refused := made.events[-1], CommandRefused)
    assert refused.command["command"] == "migrate" and "ZeroDivisionError" in refused.reason
    assert made.events[:-1] == before[1] and everything(made)[2:] == before[2:]
    assert made.push({"B": rows(2)})["pairs"].num_rows == 2
    assert (made.manifest.queries["pairs"].sql, made.manifest.queries["pairs"].plan) == (WIDER, "(A B)")
    assert made.manifest.lanes == 2 and made.migration("pairs") is None


@pytest.mark.parametrize("kind", [ReadError, WriteError, OSError, MemoryError])
@pytest.mark.parametrize("first", [None, ZeroDivisionError], ids=["the step", "only a trial"])
def test_no_command_is_refused_for_a_fault_that_passes(
    monkeypatch: pytest.MonkeyPatch, kind: type[Exception], first: type[Exception] | None
) -> None:
    """Though the step fails twice with the command and not without: so it would by chance."""
    made = engine()
    made.change_query("pairs", WIDER)
    sound, failing = made._step, [first or kind, kind]

    def fails(tables: Any, commands: Any, *more: Any) -> Any:
        if commands and failing:
            raise failing.pop(0)("it does not answer")
        return sound(tables, commands, *more)

    monkeypatch.setattr(made, "_step", fails)
    with pytest.raises((ms.MidstreamError, MemoryError), match="does not answer"):
        made.push({"B": rows(2)})
    failing.clear()
    assert made.push({"B": rows(2)})["pairs"].num_rows == 2
    assert made.manifest.queries["pairs"].sql == WIDER
    assert not [event for event in made.events if isinstance(event, CommandRefused)]


def test_commands_wait_where_a_step_fails_without_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    made.change_query("pairs", WIDER)
    before = everything(made)
    faulty(monkeypatch, 2)
    with pytest.raises(ms.InternalError):
        made.push({"B": rows(2)})
    assert everything(made) == before
    assert made.push({"B": rows(2)})["pairs"].num_rows == 2
    assert made.manifest.queries["pairs"].sql == WIDER


def test_a_fault_that_stays_ends_with_its_query(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    made.add_query("all", "SELECT A.k FROM A")
    made.push()
    faulty(monkeypatch, 1000)
    for _ in range(3):
        with pytest.raises(ms.InternalError):
            made.push({"A": rows(2)})
    made.drop_query("pairs")
    assert made.push({"A": rows(2)})["all"].num_rows == 1


def test_a_command_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine()
    before = everything(made)
    monkeypatch.setattr(membership, "visible_past", lambda *_: 1 // 0)
    with pytest.raises(ms.InternalError, match="command add_query"):
        made.add_query("more", WIDER)
    assert everything(made) == before


def test_a_table_that_is_wrong_lets_commands_wait() -> None:
    made = engine()
    made.change_query("pairs", WIDER)
    with pytest.raises(ms.InputError):
        made.push({"A": pa.table({"k": [1]})})
    made.push()
    assert made.manifest.queries["pairs"].sql == WIDER
