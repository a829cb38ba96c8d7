"""Kills at random moments, under random commands:
`python -m tests.spark.random_kills [--minutes 60] [--seed 0] [--files 60]`.

Each round feeds a new job for about a minute while its driver's Python process, its JVM or its workers are killed, or
all of it is suspended while another driver takes over; queries come and go, plans migrate, lanes are rescaled, joins
go over to nodes and back, a static table is refreshed. Every other round has its checkpoint and its answers on an
object store over HTTP, whose server is killed as well and started again a little later, and a machine is lost with
all that was on its disk. A third of the rounds are of the embedded engine. Besides files the results go to a
function, a Delta table and, where its server starts, PostgreSQL. Then the job runs to its end and every sink is
compared with the oracle, step by step. Ends with 1 if one differs, and says the seed; what is drawn follows from the
seed, the moments do not.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.reader import Checkpoint
from midstream.commands.add_query import AddQuery
from midstream.commands.drop_query import DropQuery
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.commands.reshare import Reshare
from midstream.commands.spread import Spread
from midstream.migration.strategy_contract import discovered
from midstream.model.command import Command
from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.events import StepDelayed
from midstream.model.node_spread import OFF
from midstream.pipeline.doctor import examine
from midstream.ring.spreading import spreadings
from midstream.sharing.schemes.scheme_contract import schemes
from midstream.sinks.contract import STAGING
from midstream.storage.chunk_cache import FOLDER
from midstream.storage.objects import PATIENCE
from midstream.storage.places import WORK, storage_at
from tests import postgresql
from tests.object_server import BUCKET, ObjectServer, free_port
from tests.oracle.answer import Answer, answers
from tests.oracle.arrival import Lifetime, Step
from tests.oracle.compare import assert_each_step_same
from tests.oracle.spec import SECOND, Condition, Item, QuerySpec, SourceSpec
from tests.property.rows import cut, draw_rows
from tests.spark.drive import Place
from tests.spark.endless_job import QUERIES, RECENT, shape, streams
from tests.spark.endless_queries import FIRST, TEXTS, more_answers, refreshed
from tests.spark.other_sinks import DSN, by_step, forget, other_sinks
from tests.spark.processes import children
from tests.spark.ready_classes import environment

FILES, EVERY = 60, 0.8
HARMS = ("python", "jvm", "workers", "workers", "all", "suspend")
HARMS_ON_A_STORE = (*HARMS, "store", "store", "store and python", "machine")
NOT_EMBEDDED = {"jvm", "workers"}
STORE_PATIENCE = {"drivers": "120", "commands": "600"}
"""Seconds for which a driver waits for a store that does not answer, and who gives a command; on a busy machine its
server is long in coming back.
"""
HANGS = 900
"""Seconds after which a driver that does not end is taken to hang: it may have much to do on a busy machine."""
PLANS = ("((A B) C)", "(A (B C))", "((A C) B)", "[A: B C | B: A C | C: B A]", "eddy(A B C)", "stairs((A (B C)))")
JOBS = {"Spark": "tests.spark.endless_job", "the embedded engine": "tests.spark.endless_engine"}


def guest(chance: Random) -> QuerySpec:
    """A query that comes and goes."""
    one, other = chance.sample("ABC", 2)
    width = chance.choice((1, 3, 6)) * SECOND
    sources = (SourceSpec(one, one, range=width), SourceSpec(other, other, range=width))
    joined = Condition(f"{one}.k = {other}.k", (one, other))
    return QuerySpec(sources, (Item(f"{one}.u", "x"), Item(f"{other}.u", "y")), (joined,))


@dataclass
class Round:
    """One job, from its first row to the comparison; with a `server` it keeps everything on that."""

    seed: int
    root: Path
    server: ObjectServer | None = None
    files: int = FILES
    host: str = "Spark"
    done: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.chance, self.place = Random(self.seed), Place(self.root)
        self.guests: dict[str, QuerySpec] = {}
        self.running: list[str] = []
        self.kept = str(self.root) if self.server is None else f"s3://{BUCKET}/round{self.seed}"
        self.log = CommandLog(storage_at(f"{self.kept}/checkpoint/commands"))
        self.drivers: list[subprocess.Popen[bytes]] = []
        self.fed, self.server_is_back = threading.Event(), threading.Thread()
        rows = draw_rows(shape(self.seed))[1]
        self.pieces = cut(streams(), rows, tuple(100 * n // self.files for n in range(1, self.files)), bare=False)

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
        self.wait_for_server()
        last = self.start("--once", "--take-over")
        assert last.wait(HANGS) == 0, f"the job failed: {(self.root / 'log').read_text()[-3000:]}"
        self.compare()

    def start(self, *options: str) -> subprocess.Popen[bytes]:
        """A driver that has begun."""
        command = [sys.executable, "-m", JOBS[self.host], str(self.root), self.kept, *options]
        own = {WORK: f"{self.root}/work", FOLDER: f"{self.root}/cache", PATIENCE: STORE_PATIENCE["drivers"]}
        with open(self.root / "log", "ab") as log:
            driver = subprocess.Popen(
                command,
                cwd=self.root,
                env=environment() | own,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        self.drivers.append(driver)
        assert driver.stdout is not None
        hangs = threading.Timer(HANGS, driver.kill)
        hangs.start()
        said = driver.stdout.readline()
        hangs.cancel()
        assert said == b"started\n", f"no driver starts: {(self.root / 'log').read_text()[-3000:]}"
        return driver

    @property
    def is_on_spark(self) -> bool:
        return self.host == "Spark"

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
        kind = self.chance.choice(("migrate", "migrate", "spread", "rescale", "reshare", "add", "drop", "refresh"))
        if kind == "migrate":
            strategy, plan = self.chance.choice(sorted(discovered())), self.chance.choice(PLANS)
            yield Migrate("chain", plan, strategy, {})
        elif kind == "spread":
            scheme = self.chance.choice(("auto", OFF, *sorted(spreadings())))
            nodes = None if scheme == OFF else self.chance.choice((1, 2, 3, 5, "auto"))
            yield Spread(self.chance.choice(("ring", "ring", "chain")), scheme, nodes)
        elif kind == "rescale":
            yield Rescale(self.chance.randrange(1, 4))
        elif kind == "refresh":
            with suppress(CheckpointError):  # No step is done yet.
                yield refreshed(self.kept, FIRST + self.done["set_table"] + 1)
        elif kind == "reshare":
            yield Reshare(self.chance.choice(sorted(schemes())))
        elif kind == "add":
            name = f"guest{len(self.guests)}"
            self.guests[name] = guest(self.chance)
            self.running.append(name)
            sink = {"path": f"{self.kept}/answers/{name}", "format": "parquet"}
            yield AddQuery(name, self.guests[name].cql(), None, sink, history=False)
        elif self.running:
            yield DropQuery(self.running.pop(self.chance.randrange(len(self.running))))

    def disturb(self, driver: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        """Do the driver harm; the one that goes on."""
        if driver.poll() is not None:
            raise AssertionError(f"the driver ended by itself: {(self.root / 'log').read_text()[-3000:]}")
        harms = HARMS if self.server is None else HARMS_ON_A_STORE
        harm = self.chance.choice([one for one in harms if self.is_on_spark or one not in NOT_EMBEDDED])
        self.done[harm] += 1
        if harm.startswith("store"):
            self.cut_off()
        if harm == "store":
            return driver
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
            if not self.is_on_spark:  # It does a step, and finds out, only where there is something to do.
                self.log.append(Rescale(2))
            assert driver.wait(HANGS) != 0, "a driver that has lost the checkpoint ended well"
            return other
        everything = [driver.pid, *jvm, *daemons, *workers]
        kill({"jvm": jvm, "all": everything, "machine": everything}.get(harm, [driver.pid]))
        self.end(driver)
        if harm == "machine":
            for folder in ("work", "cache"):
                shutil.rmtree(self.root / folder, ignore_errors=True)
        return self.start("--take-over") if self.chance.random() < 0.5 else self.start()

    def cut_off(self) -> None:
        """Kill the server of the store; a little later it is there again."""
        self.wait_for_server()
        server, seconds = self.server, self.chance.uniform(0, 4)
        assert server is not None
        server.kill()

        def begin() -> None:
            time.sleep(seconds)
            server.start()

        self.server_is_back = threading.Thread(target=begin)
        self.server_is_back.start()

    def wait_for_server(self) -> None:
        if self.server_is_back.ident is not None:
            self.server_is_back.join()

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
        events = list(Checkpoint.open(f"{self.kept}/checkpoint").events())
        steps = self.steps([event for event in events if event["event"] == "step_done"])
        since = {event["query"]: event["step"] for event in events if event["event"] == "query_added"}
        until = {event["query"]: event["step"] for event in events if event["event"] == "query_dropped"}
        specs = QUERIES | {name: spec for name, spec in self.guests.items() if name in since}
        lives = [Lifetime(name, spec, since.get(name, 0), until.get(name)) for name, spec in specs.items()]
        for name, answer in (answers(streams(), steps, lives) | more_answers(streams(), steps, events)).items():
            assert_each_step_same(self.by_step(name, len(steps)), answer, name)
            self.done["results"] += answer.table.num_rows
        self.compare_others(answers(streams(), steps, [Lifetime("recent", RECENT, 0, None)])["recent"], len(steps))
        self.done |= Counter(event["event"] for event in events)
        if self.done[StepDelayed.kind]:  # A step that is done again leaves what it had staged until the next start.
            examine(f"{self.kept}/checkpoint", repair=True)
        staged = [name for name in (*specs, *TEXTS) if name not in until and self.names(f"answers/{name}/{STAGING}")]
        left = [
            *staged,
            *self.names("checkpoint/staging"),
            *(name for name in self.names("checkpoint/late") if "/step=" in name),
        ]
        assert not left, f"left behind, or late: {left}"

    def compare_others(self, answer: Answer, steps: int) -> None:
        """The same of the sinks that are not files."""
        for name in other_sinks(self.root):
            if self.is_on_spark or name != "called":
                found = by_step(self.root, name, steps, answer.table.column_names)
                assert_each_step_same(found, answer, name)
                self.done[f"results in {name}"] += answer.table.num_rows

    def by_step(self, query: str, steps: int) -> list[pa.Table | None]:
        """What stands in the query's sink."""
        found: list[list[pa.Table]] = [[] for _ in range(steps)]
        for name in self.names(f"answers/{query}"):
            if step := re.fullmatch(rf"answers/{query}/step=(\d+)/[^/]+[.]parquet", name):
                found[int(step[1])].append(pq.read_table(pa.BufferReader(storage_at(self.kept).read(name))))
        return [pa.concat_tables(tables) if tables else None for tables in found]

    def names(self, folder: str) -> list[str]:
        """Every file below a folder of what is kept."""
        return [name for name, _ in storage_at(self.kept).walk(folder) if not name.endswith(".probe")]

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
    parser.add_argument("--files", type=int, default=FILES)
    options = parser.parse_args()
    until, seed, total = time.monotonic() + 60 * options.minutes, options.seed, Counter[str]()
    with (
        tempfile.TemporaryDirectory(prefix="midstream-store-") as folder,
        served(Path(folder)) as server,
        database(),
    ):
        while True:
            host = "the embedded engine" if seed % 3 == 2 else "Spark"
            done = run(seed, server if seed % 2 else None, options.files, host)
            if done is None:
                return 1
            total += done
            seed += 1
            if time.monotonic() >= until:
                break
    print(f"{seed - options.seed} rounds, all exact; {dict(total)}")
    return 0


def run(seed: int, server: ObjectServer | None, files: int = FILES, host: str = "Spark") -> Counter[str] | None:
    """A round; what was done in it, or None where it went wrong, which it says: then its folder stays."""
    folder = Path(tempfile.mkdtemp(prefix="midstream-kills-"))
    one, where = Round(seed, folder, server, files, host), "a folder" if server is None else "a store"
    where += "" if one.is_on_spark else f", {host}"
    try:
        one.run()
    except (AssertionError, MidstreamError, subprocess.TimeoutExpired) as error:
        print(f"seed {seed} on {where}: {error}\n{dict(one.done)}\nsee {folder}", flush=True)
        return None
    finally:
        one.wait_for_server()
        for driver in one.drivers:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
    forget(folder)
    shutil.rmtree(folder, ignore_errors=True)
    if server is not None:
        storage_at(one.kept).remove_folder("")
    print(f"seed {seed} on {where}: exact; {dict(one.done)}", flush=True)
    return one.done


@contextmanager
def database() -> Iterator[None]:
    """A PostgreSQL server, where one can be started, with the environment leading to it."""
    with ExitStack() as stack:
        try:
            os.environ[DSN] = stack.enter_context(postgresql.server()).dsn
        except (pytest.skip.Exception, OSError, subprocess.SubprocessError) as error:
            print(f"without PostgreSQL: {error}", flush=True)
        yield
        os.environ.pop(DSN, None)


@contextmanager
def served(folder: Path) -> Iterator[ObjectServer]:
    """A store that keeps what it acknowledged when it is killed; the environment leads to it."""
    server = ObjectServer(free_port(), journal=folder / "journal")
    os.environ.update(server.environment | {PATIENCE: STORE_PATIENCE["commands"]})
    server.start()
    try:
        yield server
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(main())
