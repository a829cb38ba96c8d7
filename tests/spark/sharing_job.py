"""The job whose queries share, and come, go and change as it runs: `python -m tests.spark.sharing_job FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from midstream.spark.session import local_session
from tests.property.drive import Rescale as RescaleAction
from tests.property.rows import Shape, cut, draw_rows
from tests.sharing.case import Action, Add, Case, Change, Drop, Move
from tests.sharing.plain import asked
from tests.spark.drive import SHORT_LIVED, feed_steps
from tests.spark.shared_case import run_alone

LEFT, RIGHT = "((A B) C)", "(A (B C))"

ACTIONS: tuple[Action, ...] = (
    Add(0, "short", asked("ABC", 2)),
    Add(0, "long", asked("ABC", 6)),
    Add(0, "some", asked("ABC", 4, "A.n > 1")),
    Add(0, "pairs", asked("AB", 3, plan="(A B)")),
    Add(1, "late", asked("ABC", 3, "B.k > 0")),
    Change(2, "short", asked("ABC", 5, "A.n > 0")),
    Add(2, "wide", asked("ABC", 9)),
    Add(2, "new", asked("ABC", 6), history=False),
    RescaleAction(2, 3),
    Change(3, "late", asked("ABC", 8, "B.k > 0")),
    Drop(3, "long"),
    Move(3, "wide", RIGHT, "moving_state"),
    Move(4, "short", RIGHT, "hybmig", {}, together=True),
    Drop(4, "some"),
)
STREAMS, ROWS = draw_rows(Shape(seed=29, sizes=(60, 60, 60), span=18, keys=4, disorder=2, slack=1))
CASE = Case(STREAMS, cut(STREAMS, ROWS, (20, 40, 60, 80)), ACTIONS, lanes=2)

feed = partial(feed_steps, STREAMS, CASE.steps)
"""Put the input in a folder in place."""


def case(sharing: str) -> Case:
    """The case in a mode of sharing."""
    return replace(CASE, sharing=sharing)


def main(root: Path, sharing: str) -> None:
    """Run the job to its end; commands are given as the steps go by, each once."""
    run_alone(local_session("sharing", settings=SHORT_LIVED), root, case(sharing), CASE.lanes)


if __name__ == "__main__":
    main(Path(sys.argv[1]), (Path(sys.argv[1]) / "sharing").read_text())
