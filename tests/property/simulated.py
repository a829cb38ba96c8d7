"""A job on a checkpoint and a sink whose store fails, with drivers that are killed, suspended and overtaken, by a seed.

The job is as simple as one can be: its input is the numbers from 0 on, each step takes some of them, as many as the
seed says, so two drivers that do one step do it with other input, as does one that does a step again. Its state is a
chunk for each step, its results are the numbers. Commands are given to it as it goes.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from unittest.mock import patch

import pyarrow as pa

from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.epochs import Holder
from midstream.checkpoint.event_log import EventLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.commands.rescale import Rescale
from midstream.model.errors import CheckpointError, MidstreamError, ReadError, WriteError
from midstream.model.events import LanesRescaled
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import LaneState, Manifest, Published, StateListing
from midstream.sinks import FileSink, StagedStep
from midstream.sinks.contract import step_of
from midstream.state.chunk_store import store_chunk
from midstream.storage.files import FileStore
from midstream.storage.storage_contract import Storage
from midstream.storage.sweep import sweep
from tests.property.simulated_store import Killed, SimulatedLibrary, World

JOB, LANE, STATE = "simulated", LaneId("single", 0), StateId("A", "0", "scan")
CHECKPOINT, SINK = "checkpoint", "sink"
NEXT, STAGED = "next", "staged"
"""What these drivers publish as read: the next input, and the files that a step has staged."""

HERE = Holder.here()
"""All drivers are of one process: what it is called is looked up once."""


class SimulatedSink(FileSink):
    """The sink of files, in a world."""

    def __init__(self, world: World) -> None:
        super().__init__(SINK, "json")
        object.__setattr__(self, "world", world)

    def _storage(self, durable: bool = True) -> Storage:
        return self.world.at(SINK)  # type: ignore[attr-defined, no-any-return]


@dataclass
class Driver:
    """A driver of the job, in the order in which the one on Spark does things."""

    world: World

    def __post_init__(self) -> None:
        self.storage = self.world.at(CHECKPOINT)
        self.log = ManifestLog(self.storage.at("manifests"), keep=4)
        self.sink = SimulatedSink(self.world)
        self.events = EventLog(self.storage.at("events"))
        self.commands = CommandLog(self.storage.at("commands"))

    def run(self, steps: int) -> None:
        """Do some steps, from wherever the checkpoint is."""
        writer = Writer.take(self.log, take_over=True)
        try:
            manifest = self.log.latest() or Manifest(JOB)
            self.check(manifest)
            self.manifest = writer.begin(manifest)
            self.clear_later(self.manifest)
            self.check(self.manifest)
            self.deliver(self.manifest)
            self.clear(self.manifest)
            store = FileStore(self.storage.at("store"), epoch=writer.claim.number)
            for number in range(self.manifest.step + 1, self.manifest.step + 1 + steps):
                self.patiently(writer, store, number)
        finally:
            writer.release()

    def patiently(self, writer: Writer, store: FileStore, number: int) -> None:
        """Do a step again where it fails for a reason outside, a few times."""
        for attempt in range(4):
            try:
                if number != self.manifest.step:
                    self.step(writer, store)
                self.deliver(self.manifest)
            except (ReadError, WriteError):
                if attempt == 3 or self.world.chance.random() < 0.3:
                    raise
                self.world.note("done again")
            else:
                return

    def check(self, manifest: Manifest) -> None:
        stamp, line = self.sink.newest("q"), manifest.time_line
        if stamp is None or (stamp.step <= manifest.step and line.has(stamp)):
            return
        if not line.gave_up(stamp):
            raise CheckpointError("the sink is ahead", place="q", remedy="rewind")
        self.sink.forget_after("q", manifest.step, line.gave_up)

    def clear_later(self, manifest: Manifest) -> None:
        storage, tokens = self.sink.staging(self.storage).storage, {epoch.token for epoch in manifest.epochs}
        for token in sorted(tokens & set(storage.names())):
            for folder in storage.names(token):
                if step_of(folder) > manifest.step:
                    storage.remove_folder(f"{token}/{folder}")

    def clear(self, manifest: Manifest) -> None:
        storage, former = self.sink.staging(self.storage).storage, {epoch.token for epoch in manifest.epochs[:-1]}
        for folder in storage.names():
            if folder.partition(".")[0] in former:
                storage.remove_folder(folder)

    def step(self, writer: Writer, store: FileStore) -> None:
        before = self.manifest
        first, step = _next(before), before.step + 1
        given = self.commands.after(before.last_command)
        taken = range(first, min(first + self.world.chance.randrange(1, 4), self.world.inputs))
        line = before.time_line
        staging = self.sink.staging(self.storage).of(line.stamp(step))
        rows = pa.record_batch({"n": list(taken)})
        attempt = self.world.chance.randrange(1 << 32)
        shares = (rows.slice(0, 1), rows.slice(1)) if taken else ()
        files = [staging.write(f"lane{n}-{attempt}", pa.table(share)) for n, share in enumerate(shares)]
        chunk = store_chunk(store, f"A.lane0/{step:06d}-base", rows)
        listing = before.lane_states[LANE].states[STATE] if before.lane_states else StateListing()
        states = {LANE: LaneState({STATE: replace(listing, chunks=(*listing.chunks, chunk)[-3:])})}
        following = taken.stop if taken else first
        published = Published(read={NEXT: (str(following),), STAGED: tuple(files)})
        last = max([before.last_command, *(number for number, _ in given)])
        after = replace(before, step=step, lane_states=states, published=published, last_command=last)
        self.events.write(step, line, [LanesRescaled(step, first, following)])
        writer.commit(after)
        self.manifest = after
        if step % 3 == 0:
            sweep(self.storage.at("store"), self.log.kept())
            self.events.tidy(line, step)

    def deliver(self, manifest: Manifest) -> None:
        files = manifest.published.read.get(STAGED, ())
        if files:
            line = manifest.time_line
            staging = self.sink.staging(self.storage).of(line.stamp(manifest.step))
            self.sink.commit(StagedStep("q", manifest.step, line, staging, files))
            staging.storage.remove(files)


def _next(manifest: Manifest) -> int:
    (following,) = manifest.published.read.get(NEXT, ("0",))
    return int(following)


def disturb(world: World) -> None:
    """Something else happens to the checkpoint: another driver, a command, or somebody goes back."""
    try:
        what = world.chance.random()
        if what < 0.2:
            log = Driver(world).log
            steps = log.steps()
            if steps:
                log.rewind(world.chance.choice(steps), take_over=True)
                world.note("went back")
        elif what < 0.35:
            world.commands += 1
            given = world.commands
            Driver(world).commands.append(Rescale(given))
            world.accepted.append(given)
        else:
            Driver(world).run(world.chance.randrange(1, 4))
    except Killed:
        return
    except MidstreamError:
        return


def run(seed: int, objects: bool = False, inputs: int = 12, dangers: int = 25) -> World:
    """Disturb a job until it has seen some trouble, then let it end undisturbed."""
    world = World(random.Random(seed), inputs, dangers, objects, disturb)
    with (
        patch("midstream.checkpoint.epochs.secrets.token_hex", lambda size: f"{world.chance.getrandbits(32):08x}"),
        patch("midstream.storage.objects._library", lambda: SimulatedLibrary),
        patch.object(Holder, "here", lambda: HERE),
    ):
        for _ in range(world.chance.randrange(2, 5)):
            disturb(world)
        world.dangers = 0
        driver = Driver(world)
        driver.run(0)
        while (newest := driver.log.latest()) is None or _next(newest) < world.inputs:
            driver.run(1)
        while world.late:  # Whatever was on its way arrives in the end, and a driver starts after that.
            world.arrive()
        Driver(world).run(0)
    return world


def results(world: World) -> list[int]:
    """Every number that a reader of the sink sees."""
    found = []
    for path, data in world.files.items():
        if path.startswith(f"{SINK}/step="):
            found += [json.loads(line)["n"] for line in data.decode().splitlines()]
    return sorted(found)
