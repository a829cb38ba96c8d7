"""A job from topics to a topic that is killed: `python -m tests.kafka.killed_job POINT STEP` beside `job.toml`.

It asks for another plan with its third step, and dies at the point of the step: one of `KAFKA_POINTS`, or one of a step
of any job, by `MIDSTREAM_KILL_AT`. What the broker has of it then is as if the power had failed. With a third argument
it stands still there until it is continued.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Any

import confluent_kafka

from midstream.embedded.job_run import FileJob
from midstream.embedded.kafka_source import KafkaSource
from midstream.pipeline.crash_points import CrashPoint
from midstream.sql.job_file import read_job_file

SINK_POINTS = ("amid_messages", "before_offsets", "before_commit", "after_commit")
ASIDE_POINTS = ("aside_before_commit", "aside_after_commit")
"""As those of the same end, once the step after the one that is sent has been done, but for its manifest."""
KAFKA_POINTS = ("amid_read", *SINK_POINTS, *ASIDE_POINTS)
PLANS = ("((A B) C)", "(A (B C))")


def die_in_sink(point: str, step: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have this process die at a point of the transaction that sends a step."""

    done, reach_point = threading.Event(), CrashPoint.reach

    def reaching(self: CrashPoint, here: str, at: int) -> None:
        if here == "after_chunks" and at == step + 1:
            done.set()
        reach_point(self, here, at)

    class Producer(confluent_kafka.Producer):
        sent = -1

        def produce(self, *args: Any) -> None:
            super().produce(*args)
            ((_, mark),) = args[-1]
            before, self.sent = self.sent, int(mark.split(b"/")[2])
            if point == "amid_messages" and before != self.sent:
                self.flush(5)
                self.reach("amid_messages")

        def send_offsets_to_transaction(self, *args: Any) -> None:
            self.reach("before_offsets")
            super().send_offsets_to_transaction(*args)

        def commit_transaction(self, *args: Any) -> None:
            if point.endswith("before_commit"):
                self.flush(5)
            aside = self.sent == step and point in ASIDE_POINTS
            if aside and threading.current_thread() is not threading.main_thread():
                print("the next step is done:", done.wait(5), file=sys.stderr, flush=True)  # Commands wait for this.
            self.reach("before_commit")
            super().commit_transaction(*args)
            self.reach("after_commit")

        def reach(self, here: str) -> None:
            if here == point.removeprefix("aside_") and self.sent == step:
                os.kill(os.getpid(), by)

    CrashPoint.reach = reaching  # type: ignore[method-assign]
    confluent_kafka.Producer = Producer  # type: ignore[misc]


def die_at(point: str, step: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Run the job, and have this process die."""
    running: list[FileJob] = []
    read = KafkaSource.read

    def reading(self: KafkaSource, files: Any) -> Any:
        rows = read(self, files)
        if running and point == "amid_read" and running[0].engine.manifest.step + 1 == step:
            os.kill(os.getpid(), by)
        return rows

    die_in_sink(point, step, by)
    KafkaSource.read = reading  # type: ignore[method-assign]
    running.append(FileJob(read_job_file("job.toml")))
    run(running[0])


def run(job: FileJob) -> None:
    """Do steps until nothing waits."""
    with job:
        while True:
            manifest = job.engine.manifest
            if manifest.step == 1 and not manifest.pending and manifest.queries["q"].plan == PLANS[0]:
                job.engine.migrate("q", PLANS[1])
            if not job.step():
                return


if __name__ == "__main__":
    die_at(sys.argv[1], int(sys.argv[2]), signal.SIGSTOP if sys.argv[3:] else signal.SIGKILL)
