"""Parallel track: both plans, results held back, the two purge rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import midstream as ms
from midstream.model.events import MigrationEnded
from tests.unit.migration.rides import SECOND, Ride, rows_of

MOVE = ("(A (B (C D)))", "parallel_track")


def test_new_results_are_held_back_and_released_in_one_burst() -> None:
    """Zhu §4.2: until the old plan is done only results with an old row go out."""
    still = Ride("(((A B) C) D)").go(24)
    ride = Ride("(((A B) C) D)").go(24, {9: (*MOVE, {"hold_new": True})})
    (ended,) = ride.events(MigrationEnded)
    assert ride.total == still.total
    held = [now - then for now, then in zip(still.found, ride.found, strict=True)]
    assert sum(map(len, held[: ended.step])) > 0
    assert all(not then - now for now, then in zip(still.found[: ended.step], ride.found[: ended.step], strict=True))
    assert ride.found[ended.step].total() > still.found[ended.step].total()
    assert ride.found[ended.step + 1 :] == still.found[ended.step + 1 :]


@pytest.mark.parametrize("second", ["moving_state", "hybmig", "parallel_track"])
def test_what_is_held_back_outlives_the_next_migration(second: str) -> None:
    still = Ride("(((A B) C) D)").go(30)
    moves = {9: (*MOVE, {"hold_new": True}), 12: ("((A C) (B D))", second, {})}
    ride = Ride("(((A B) C) D)").go(30, moves)
    assert ride.total == still.total
    assert ride.found[12].total() > still.found[12].total()


def test_what_is_held_back_outlives_a_rescale_and_a_restart(tmp_path: object) -> None:
    still = Ride("(((A B) C) D)").go(30)
    ride = Ride("(((A B) C) D)").go(12, {9: (*MOVE, {"hold_new": True})})
    ride.engine.save(f"{tmp_path}/saved")
    ride.engine = ms.Engine.load(f"{tmp_path}/saved")
    ride.engine.rescale(lanes=2)
    assert ride.go(18).total == still.total


def test_a_column_of_the_answer_may_have_any_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of the column in which the times of rows held back are kept."""
    still = Ride("(((A B) C) D)").go(24)
    sql = still.sql.replace("AS b", "AS _now")
    monkeypatch.setattr(Ride, "sql", sql)
    ride = Ride("(((A B) C) D)").go(24, {9: (*MOVE, {"hold_new": True})})
    assert ride.total == still.total


def stage(sql: str, step: Callable[[int], dict[str, pa.Table]], begun: int, steps: int, **options: Any) -> int:
    """How many steps after the first one a migration from (((A B) C) D) by parallel track ends."""
    made = ms.Engine()
    for name in "ABCD":
        made.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    made.add_query("q", sql, plan="(((A B) C) D)")
    still = ms.Engine()
    for name in "ABCD":
        still.create_stream(name, "k BIGINT, ts TIMESTAMP", timestamp="ts")
    still.add_query("q", sql, plan="(((A B) C) D)")
    for number in range(steps):
        if number == begun:
            made.migrate("q", *MOVE, **options)
        rows = step(number)
        assert rows_of(made.push(rows)["q"]) == rows_of(still.push(rows)["q"])
    (ended,) = [event for event in made.events if isinstance(event, MigrationEnded)]
    return ended.step - begun


BY_KEY = "SELECT A.k FROM A, B, C, D WHERE A.k = B.k AND B.k = C.k AND C.k = D.k WINDOW 8 SECONDS"


def alike(number: int, keys: Callable[[int], int]) -> dict[str, pa.Table]:
    """A row a second in each stream, all with the same key."""
    times = pa.array([number * SECOND], pa.timestamp("us"))
    return {name: pa.table({"k": pa.array([keys(number)]), "ts": times}) for name in "ABCD"}


def test_the_papers_purge_rule_lasts_as_long_as_old_rows_go_on_being_joined() -> None:
    """Lemma 2.2: an old tuple goes when a tuple of the other input is, in all its parts, a window later than it."""
    lengths = {}
    for purge in ("watermark", "zhu"):
        lengths[purge] = (
            # Rows meet those of the whole window: mixed tuples are made until W, and live for W more.
            stage(BY_KEY, lambda n: alike(n, lambda _: 1), 9, 30, purge=purge),
            # Rows meet those of their own second only: what the start made is gone after W.
            stage(BY_KEY, lambda n: alike(n, lambda n: n), 9, 30, purge=purge),
            # Four seconds share a key: the last mixed tuple is made three seconds after the last old row.
            stage(BY_KEY, lambda n: alike(n, lambda n: n // 4), 9, 30, purge=purge),
        )
    assert lengths["watermark"] == (9, 9, 9)
    assert lengths["zhu"] == (16, 9, 11)


def test_the_papers_purge_rule_ends_after_2w_though_nothing_comes_that_could_purge() -> None:
    """No tuple of A ⋈ B ⋈ C is made any more, so the lemma purges no old row of D; Equation 4 does."""
    assert stage(BY_KEY, lambda n: alike(n, lambda _: -1) if n < 9 else differing(n), 9, 32, purge="zhu") == 17


def differing(number: int) -> dict[str, pa.Table]:
    """A row a second in each stream, none of which matches another."""
    return {
        name: pa.table({"k": pa.array([4 * number + at]), "ts": pa.array([number * SECOND], pa.timestamp("us"))})
        for at, name in enumerate("ABCD")
    }


def test_the_papers_purge_rule_goes_on_after_a_restart(tmp_path: Path) -> None:
    """What is known of mixed tuples is in the manifest."""
    lengths = []
    for saved in (False, True):
        ride = Ride("(((A B) C) D)").go(10, {9: (*MOVE, {"purge": "zhu"})})
        if saved:
            for _ in range(4):
                ride.engine.save(tmp_path / "saved")
                ride.engine = ms.Engine.load(tmp_path / "saved")
                ride.go(1)
        ride.go(30 - len(ride.found))
        assert ride.found == Ride("(((A B) C) D)").go(30).found
        (ended,) = ride.events(MigrationEnded)
        lengths.append(ended.step - 9)
    assert lengths[0] == lengths[1] > 9


def test_the_papers_purge_rule_needs_windows_of_time() -> None:
    ride = Ride("(((A B) C) D)", windows="A [ROWS 5], B [ROWS 5], C [ROWS 5], D [ROWS 5]").go(2)
    with pytest.raises(ms.StrategyError, match=r"a window of the query counts rows; leave it out") as refused:
        ride.engine.migrate("q", *MOVE, purge="zhu")
    assert refused.value.place == "query q"
    ride.engine.migrate("q", *MOVE)


def test_what_a_shared_subplan_makes_later_is_new() -> None:
    """C ⋈ D is one stream to both plans: a pair of an old and a new row is a new row of it, and the new plan has it."""
    still = Ride("((A B) (C D))").go(30)
    assert Ride("((A B) (C D))").go(30, {9: ("(((C D) B) A)", "parallel_track", {})}).total == still.total


def test_an_aggregate_cannot_wait() -> None:
    ride = Ride("(((A B) C) D)").go(1)
    ride.engine.add_query("n", "SELECT COUNT(*) AS n FROM A, B WHERE A.k = B.k WINDOW 5 SECONDS EVERY 5 SECONDS")
    ride.go(1)
    with pytest.raises(ms.StrategyError, match="hold_new keeps rows of the answer back"):
        ride.engine.migrate("n", "(B A)", "parallel_track", hold_new=True)
    with pytest.raises(ms.StrategyError, match="purge is one of watermark, zhu"):
        ride.engine.migrate("q", "(A (B (C D)))", "parallel_track", purge="never")
