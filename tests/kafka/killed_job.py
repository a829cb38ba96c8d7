"""A job from topics to a topic that is killed: `python -m tests.kafka.killed_job POINT STEP` beside `job.toml`.

It asks for another plan with its third step, and dies at the point of the step: one of `KAFKA_POINTS`, or one of a step
of any job, by `MIDSTREAM_KILL_AT`. What the broker has of it then is as if the power had failed. With a third argument
it stands still there until it is continued.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import confluent_kafka

from midstream.engine.job_run import FileJob
from midstream.engine.kafka_source import KafkaSource
from midstream.language.job_file import read_job_file

KAFKA_POINTS = ("amid_read", "amid_messages", "before_offsets", "before_commit", "after_commit")
PLANS = ("((A B) C)", "(A (B C))")


def die_at(point: str, step: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Have this process die."""
    running: list[FileJob] = []
    flushed: list[Any] = []

    def reach(here: str, committed: bool = True) -> None:
        if running and here == point and running[0].engine.manifest.step + (not committed) == step:
            os.kill(os.getpid(), by)

    class Producer(confluent_kafka.Producer):
        def produce(self, *args: Any, **more: Any) -> None:
            super().produce(*args, **more)
            if point == "amid_messages" and self not in flushed:
                flushed.append(self)
                self.flush(5)
                reach("amid_messages")

        def send_offsets_to_transaction(self, *args: Any) -> None:
            reach("before_offsets")
            super().send_offsets_to_transaction(*args)

        def commit_transaction(self, *args: Any) -> None:
            if point == "before_commit":
                self.flush(5)
            reach("before_commit")
            super().commit_transaction(*args)
            reach("after_commit")

    read = KafkaSource.read

    def reading(self: KafkaSource, files: Any) -> Any:
        rows = read(self, files)
        reach("amid_read", committed=False)
        return rows

    confluent_kafka.Producer = Producer  # type: ignore[misc]
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
