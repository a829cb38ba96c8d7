"""The job whose checkpoint is kept: `python -m tests.checkpoints.spark_job FOLDER` runs it to its end."""

from __future__ import annotations

import sys
from pathlib import Path

from midstream.spark.session import local_session
from tests.checkpoints.course import Course
from tests.checkpoints.courses import CROSSED, LEFT, RIGHT, ROWS, case, counts, difference, member
from tests.property.drive import Rescale as RescaleAction
from tests.sharing.case import Add, Change, Drop, Move
from tests.spark.drive import SHORT_LIVED
from tests.spark.shared_case import run_alone

SAVED = 5

ACTIONS = (
    Add(0, "whole", member("k", 5, plan=LEFT)),
    Add(0, "narrow", member("k", 2, plan=LEFT)),
    Add(0, "filtered", member("k", 4, "A.n > 1", plan=LEFT)),
    Add(0, "leaves", member("n", 6, "B.k > 0", plan=LEFT)),
    Add(0, "stays", member("n", 4, plan=LEFT)),
    Add(0, "alone", member("kn", 5, plan=LEFT)),
    Add(0, "counts", counts("ABC", 4, plan=LEFT)),
    Add(0, "except", difference("A", "B", 5)),
    Add(0, "numbered", member("s", 9, rows=True, plan=LEFT)),
    Add(1, "comes", member("n", 3, "C.k > 0", plan=LEFT)),
    Move(3, "whole", RIGHT, "hybmig", {}, together=True),
    Move(3, "leaves", RIGHT, "parallel_track"),
    Move(3, "alone", RIGHT, "gpt"),
    Move(3, "counts", CROSSED, "ghm", {"budget": 2}),
    Move(SAVED, "stays", RIGHT, "jisc", {"background": 1}, together=True),
    Add(SAVED, "waits", member("k", 3, "B.n > 0", plan=RIGHT)),
    Drop(6, "narrow"),
    Change(6, "filtered", member("k", 6, "A.n > 1", plan=LEFT)),
    RescaleAction(7, 3),
)
"""Those of the step `SAVED` are in the command log when the checkpoint is kept, and not taken yet."""

COURSE = Course(case(ROWS, *ACTIONS), SAVED, frozenset({"whole", "leaves", "alone", "counts"}))
CASE = COURSE.case
LANES = 2


def main(root: Path) -> None:
    """Run the job to its end; commands are given as the steps go by, each once."""
    run_alone(local_session("kept", settings=SHORT_LIVED), root, CASE, LANES)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
