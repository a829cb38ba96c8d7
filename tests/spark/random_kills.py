"""Kills at random moments, under random commands: `python -m tests.spark.random_kills [--minutes 60] [--seed 0]`.

Each round feeds a new job for about a minute while its driver's Python process, its JVM or its workers are killed, or
all of it is suspended while another driver takes over; queries come and go, plans migrate, lanes are rescaled. Then the
job runs to its end and every sink is compared with the oracle, step by step. Ends with 1 if one differs, and says the
seed; what is drawn follows from the seed, the moments do not.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.reader import Checkpoint
from midstream.migration.discovery import discovered
from midstream.model.command import Command
from midstream.model.errors import MidstreamError
from midstream.sharing.discovery import schemes
from midstream.step.commands.add_query import AddQuery
from midstream.step.commands.drop_query import DropQuery
from midstream.step.commands.migrate import Migrate
from midstream.step.commands.rescale import Rescale
from midstream.step.commands.reshare import Reshare
from tests.oracle.answer import answers
from tests.oracle.arrival import Lifetime, Step
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.rows import cut, draw_rows
from tests.spark.drive import Place
from tests.spark.endless_job import QUERIES, shape, streams
from tests.spark.processes import children
from tests.spark.ready_classes import environment

FILES, EVERY = 60, 0.8
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: A C | C: B A]", "eddy(A B C)", "stairs((A (B C)))")
JOB = "tests.spark.endless_job"


def guest(chance: Random) -> QuerySpec:
    """A query that comes and goes."""
    one, other = chance.sample("ABC", 2)
    width = chance.choice((1, 3, 6)) * SECOND
    sources = (SourceSpec(one, one, range=width), SourceSpec(other, other, range=width))
    joined = Condition(f"{one}.k = {other}.k", (one, other))
    return QuerySpec(sources, (Item(f"{one}.u", "x"), Item(f"{other}.u", "y")), (joined,))


@dataclass
class Round:
    """One job, from its first row to the comparison."""

    seed: int
    root: Path
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance, self.place = Random(self.seed), Place(self.root)
        self.guests: dict[str, QuerySpec] = {}
        self.running: list[str] = []
        self.log = CommandLog(self.place.checkpoint / "commands")
        self.fed = threading.Event()
        rows = draw_rows(shape(self.seed))[1]
        self.pieces = cut(streams(), rows, tuple(100 * n // FILES for n in range(1, FILES)), bare=False)

    def run(self) -> None:
        """Feed and kill; then let the job end, and compare."""
        self.feed(0)
        feeder = threading.Thread(target=self.feed_all, daemon=True)
        driver = self.start("--take-over")
        feeder.start()
        while not self.fed.is_set():
            until = time.monotonic() + self.chance.uniform(0.5, 9)
            while time.monotonic() < until and driver.poll() is None and not self.fed.is_set():
                time.sleep(0.2)
                self.command()
            driver = self.disturb(driver)
        self.end(driver)
        last = self.start("--once", "--take-over")
        assert last.wait(180) == 0, "the job failed"
        self.compare()

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """A driver that has begun."""
        command = [sys.executable, "-m", JOB, str(self.root), *options]
        with open(self.root / "log", "ab") as log:
            driver = subprocess.Popen(
                command, cwd=self.root, env=environment(), stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )
        assert driver.stdout is not None
        said = driver.stdout.readline()
        assert said == b"started\n", f"no driver starts: {(self.root / 'log').read_text()[-3000:]}"
        return driver

    def feed(self, number: int) -> None:
        self.place.feed_together(number, self.pieces[number])

    def feed_all(self) -> None:
        for number in range(1, len(self.pieces)):
            time.sleep(EVERY)
            self.feed(number)
        self.fed.set()

    def command(self) -> None:
        """Give a command, now and then; the job refuses those that make no sense."""
        if self.chance.random() < 0.25:
            for command in self.commands():
                self.log.append(command)
                self.done[command.kind] += 1

    def commands(self) -> Iterator[Command]:
        kind = self.chance.choice(("migrate", "migrate", "rescale", "reshare", "add", "drop"))
        if kind == "migrate":
            strategy, plan = self.chance.choice(sorted(discovered())), self.chance.choice(PLANS)
            yield Migrate("chain", plan, strategy, {})
        elif kind == "rescale":
            yield Rescale(self.chance.randrange(1, 4))
        elif kind == "reshare":
            yield Reshare(self.chance.choice(sorted(schemes())))
        elif kind == "add":
            name = f"guest{len(self.guests)}"
            self.guests[name] = guest(self.chance)
            self.running.append(name)
            sink = {"path": str(self.place.answers(name)), "format": "parquet"}
            yield AddQuery(name, self.guests[name].cql(), None, sink, history=False)
        elif self.running:
            yield DropQuery(self.running.pop(self.chance.randrange(len(self.running))))

    def disturb(self, driver: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """Do the driver harm; the one that goes on."""
        if driver.poll() is not None:
            raise AssertionError(f"the driver ended by itself: {(self.root / 'log').read_text()[-3000:]}")
        harm = self.chance.choice(("python", "jvm", "workers", "workers", "all", "suspend"))
        self.done[harm] += 1
        jvm = children([driver.pid], "java")
        daemons = children(jvm, "pyspark.daemon")
        workers = children(daemons, "pyspark.daemon")
        if harm == "workers":
            kill(self.chance.sample(workers, min(len(workers), 2)) or daemons)
            return driver
        if harm == "suspend":
            everybody = [driver.pid, *jvm, *daemons, *workers]
            kill(everybody, signal.SIGSTOP)
            other = self.start("--take-over")
            kill(everybody, signal.SIGCONT)
            assert driver.wait(120) != 0, "a driver that has lost the checkpoint ended well"
            return other
        kill({"python": [driver.pid], "jvm": jvm, "all": [driver.pid, *jvm, *daemons, *workers]}[harm])
        self.end(driver)
        return self.start("--take-over") if self.chance.random() < 0.5 else self.start()

    def end(self, driver: subprocess.Popen[bytes]) -> None:
        """See that the driver ends, in order where it can."""
        driver.terminate()
        with suppress(subprocess.TimeoutExpired):
            driver.wait(60)
            return
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()

    def compare(self) -> None:
        """Every sink with the oracle: the steps are cut as the job has cut them."""
        events = list(Checkpoint.open(self.place.checkpoint).events())
        steps = self.steps([event for event in events if event["event"] == "step_done"])
        since = {event["query"]: event["step"] for event in events if event["event"] == "query_added"}
        until = {event["query"]: event["step"] for event in events if event["event"] == "query_dropped"}
        specs = QUERIES | {name: spec for name, spec in self.guests.items() if name in since}
        lives = [Lifetime(name, spec, since.get(name, 0), until.get(name)) for name, spec in specs.items()]
        for name, answer in answers(streams(), steps, lives).items():
            assert_each_step_same(self.place.by_step(name, len(steps)), answer, name)
            self.done["results"] += answer.table.num_rows
        self.done |= Counter(event["event"] for event in events)
        staged = [name for name in specs if name not in until and any(self.place.answers(name).glob("_staging/*"))]
        left = [*staged, *self.root.glob("checkpoint/late/*/step=*")]
        assert not left, f"left behind, or late: {left}"

    def steps(self, events: list[dict[str, Any]]) -> tuple[Step, ...]:
        """The input, cut by what each step has read of it."""
        whole = {spec.name: pa.concat_tables([piece[spec.name] for piece in self.pieces]) for spec in streams()}
        read, found = dict.fromkeys(whole, 0), []
        for number, event in enumerate(events):
            assert event["step"] == number, "a step is missing"
            rows = event["rows_in"]
            found.append({name: whole[name].slice(read[name], rows.get(name, 0)) for name in whole})
            read = {name: at + rows.get(name, 0) for name, at in read.items()}
        assert read == {name: table.num_rows for name, table in whole.items()}, "rows were not read, or read twice"
        return tuple(found)


def kill(processes: list[int], how: signal.Signals = signal.SIGKILL) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, how)


def main() -> int:
    """Rounds until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    until, seed, total = time.monotonic() + 60 * options.minutes, options.seed, Counter[str]()
    while time.monotonic() < until:
        with tempfile.TemporaryDirectory(prefix="midstream-kills-", ignore_cleanup_errors=True) as folder:
            one = Round(seed, Path(folder))
            try:
                one.run()
            except (AssertionError, MidstreamError) as error:
                print(f"seed {seed}: {error}\n{dict(one.done)}", flush=True)
                return 1
        total += one.done
        print(f"seed {seed}: exact; {dict(one.done)}", flush=True)
        seed += 1
    print(f"{seed - options.seed} rounds, all exact; {dict(total)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
