"""A checkpoint and a sink on a store that fails, and drivers that are killed, suspended and overtaken, all by a seed.

Every request to the store is a moment at which the driver that makes it may die, before or after it took effect, be
told that it failed though it may not have, or be suspended: then others run on the same checkpoint, and it wakes when
they have ended or died. The job is as simple as one can be: its input is the numbers from 0 on, each step takes some of
them, as many as the seed says, so two drivers that do one step do it with other input. Its state is a chunk for each
step, its results are the numbers.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from unittest.mock import patch

import pyarrow as pa

from midstream.checkpoint.event_log import EventLog
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.writer import Writer
from midstream.model.errors import CheckpointError, MidstreamError, SinkError
from midstream.model.events import LanesRescaled
from midstream.model.ids import LaneId, StateId
from midstream.model.manifest import LaneState, Manifest, StateListing
from midstream.sinks import FileSink, StagedStep
from midstream.sinks.contract import step_of
from midstream.state.store.base import store_chunk
from midstream.state.store.files import FileStore
from midstream.state.store.storage import Storage
from midstream.state.sweep import sweep

JOB, LANE, STATE = "simulated", LaneId("single", 0), StateId("A", "0", "scan")
CHECKPOINT, SINK = "checkpoint", "sink"


class Killed(BaseException):
    """The driver is gone: not an Exception, so nothing may handle it."""


@dataclass
class World:
    """What is left when everybody is dead: the files. `dangers` is how many requests in a thousand go wrong; `renames`
    says whether the world has folders that can be renamed, or is an object store.
    """

    chance: random.Random
    inputs: int
    dangers: int
    renames: bool = True
    files: dict[str, bytes] = field(default_factory=dict)
    depth: int = 0
    happened: dict[str, int] = field(default_factory=dict)

    def note(self, what: str) -> None:
        """Count what the seed brought about."""
        self.happened[what] = self.happened.get(what, 0) + 1

    def before(self) -> None:
        """A request is about to be made."""
        if self.chance.randrange(1000) >= self.dangers:
            return
        what = self.chance.choice(["killed", "failed", "suspended", "suspended"])
        if what == "suspended" and self.depth >= 2:
            return
        self.note(what)
        if what == "killed":
            raise Killed
        if what == "failed":
            raise SinkError("the store does not answer", place="the store", remedy="try again")
        self.depth += 1
        for _ in range(self.chance.randrange(1, 3)):
            disturb(self)
        self.depth -= 1

    def after(self) -> None:
        """A request has taken effect."""
        if self.chance.randrange(1000) < self.dangers // 2:
            what = self.chance.choice(["killed after", "answer lost"])
            self.note(what)
            if what == "killed after":
                raise Killed
            raise SinkError("the answer of the store was lost", place="the store", remedy="try again")


class SimulatedStorage(Storage):
    """Files of a world below a prefix."""

    durable = True

    def __init__(self, world: World, prefix: str) -> None:
        self.world, self.prefix, self.renames_folders = world, prefix, world.renames

    @property
    def url(self) -> str:
        return self.prefix

    def at(self, folder: str) -> SimulatedStorage:
        return SimulatedStorage(self.world, self._path(folder))

    def prepare(self) -> None:
        return

    def write(self, name: str, data: bytes | pa.Buffer) -> None:
        self.world.before()
        self.world.files[self._path(name)] = bytes(data)
        self.world.after()

    def create(self, name: str, data: bytes | pa.Buffer) -> bool:
        self.world.before()
        taken = self._path(name) in self.world.files
        if not taken:
            self.world.files[self._path(name)] = bytes(data)
        self.world.after()
        return not taken

    def read(self, name: str) -> pa.Buffer:
        self.world.before()
        try:
            return pa.py_buffer(self.world.files[self._path(name)])
        except KeyError:
            raise FileNotFoundError(name) from None

    def names(self, folder: str = "") -> list[str]:
        self.world.before()
        prefix = f"{self._path(folder)}/"
        return sorted({path[len(prefix) :].partition("/")[0] for path in self.world.files if path.startswith(prefix)})

    def changed(self, folder: str = "") -> list[tuple[int, str]]:
        raise NotImplementedError("a checkpoint is read by names alone")

    def walk(self, folder: str = "") -> Iterator[tuple[str, int]]:
        self.world.before()
        prefix, own = f"{self._path(folder)}/", len(self.prefix) + 1
        return iter([(p[own:], len(data)) for p, data in self.world.files.items() if p.startswith(prefix)])

    def remove(self, names: Iterable[str]) -> None:
        for name in list(names):
            self.world.before()
            self.world.files.pop(self._path(name), None)

    def remove_folder(self, folder: str) -> None:
        self.remove([name for name, _ in self.walk(folder)])

    def move(self, source: str, target: str) -> None:
        self.world.before()
        try:
            self.world.files[self._path(target)] = self.world.files[self._path(source)]
        except KeyError:
            raise FileNotFoundError(source) from None
        self.world.after()
        self.world.files.pop(self._path(source), None)

    def copy_all(self, copies: Mapping[str, str]) -> None:
        for source, target in copies.items():
            self.world.before()
            if self._path(source) not in self.world.files:
                raise FileNotFoundError(source)
            self.world.files[self._path(target)] = self.world.files[self._path(source)]
            self.world.after()

    def move_folder(self, source: str, target: str) -> bool:
        if self.names(target):
            return False
        self.world.before()
        moved = [path for path in self.world.files if path.startswith(f"{self._path(source)}/")]
        if any(path.startswith(f"{self._path(target)}/") for path in self.world.files):
            return False
        for path in moved:
            self.world.files[f"{self._path(target)}{path[len(self._path(source)) :]}"] = self.world.files.pop(path)
        self.world.after()
        return True

    def _path(self, name: str) -> str:
        return "/".join(filter(None, (self.prefix, name)))


class SimulatedSink(FileSink):
    """The sink of files, in a world."""

    def __init__(self, world: World) -> None:
        super().__init__(SINK, "json")
        object.__setattr__(self, "world", world)

    def _storage(self, durable: bool = True) -> Storage:
        return SimulatedStorage(self.world, SINK)  # type: ignore[attr-defined]


@dataclass
class Driver:
    """A driver of the job, in the order in which the one on Spark does things."""

    world: World

    def __post_init__(self) -> None:
        self.storage = SimulatedStorage(self.world, CHECKPOINT)
        self.log = ManifestLog(self.storage.at("manifests"), keep=4)
        self.sink = SimulatedSink(self.world)
        self.events = EventLog(self.storage.at("events"))

    def run(self, steps: int) -> None:
        """Do some steps, from wherever the checkpoint is."""
        writer = Writer.take(self.log, take_over=True)
        try:
            manifest = self.log.latest() or Manifest(JOB)
            self.check(manifest)
            manifest = writer.begin(manifest)
            self.clear_later(manifest)
            self.check(manifest)
            self.deliver(manifest)
            self.clear(manifest)
            store = FileStore(self.storage.at("store"), epoch=writer.claim.number)
            for _ in range(steps):
                manifest = self.step(writer, store, manifest)
        finally:
            writer.release()

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

    def step(self, writer: Writer, store: FileStore, before: Manifest) -> Manifest:
        first, step = before.published.get("next", 0), before.step + 1
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
        published = {"next": taken.stop if taken else first, "files": files}
        after = replace(before, step=step, lane_states=states, published=published)
        self.events.write(step, line, [LanesRescaled(step, first, published["next"])])
        writer.commit(after)
        self.deliver(after)
        if step % 3 == 0:
            sweep(self.storage.at("store"), self.log.kept())
            self.events.tidy(line, step)
        return after

    def deliver(self, manifest: Manifest) -> None:
        files = tuple(manifest.published.get("files", ()))
        if files:
            line = manifest.time_line
            staging = self.sink.staging(self.storage).of(line.stamp(manifest.step))
            self.sink.commit(StagedStep("q", manifest.step, line, staging, files))
            staging.storage.remove(files)


def disturb(world: World) -> None:
    """Something else happens to the checkpoint: another driver, or somebody goes back."""
    try:
        if world.chance.random() < 0.25:
            log = ManifestLog(SimulatedStorage(world, CHECKPOINT).at("manifests"), keep=4)
            steps = log.steps()
            if steps:
                log.rewind(world.chance.choice(steps), take_over=True)
                world.note("went back")
        else:
            Driver(world).run(world.chance.randrange(1, 4))
    except Killed:
        return
    except MidstreamError:
        return


def run(seed: int, renames: bool = True, inputs: int = 12, dangers: int = 25) -> World:
    """Disturb a job until it has seen some trouble, then let it end undisturbed."""
    world = World(random.Random(seed), inputs, dangers, renames)
    with patch("midstream.checkpoint.epochs.secrets.token_hex", lambda size: f"{world.chance.getrandbits(32):08x}"):
        return _run(world)


def _run(world: World) -> World:
    for _ in range(world.chance.randrange(2, 5)):
        disturb(world)
    world.dangers = 0
    driver = Driver(world)
    driver.run(0)
    while (newest := driver.log.latest()) is None or newest.published.get("next", 0) < world.inputs:
        driver.run(1)
    return world


def results(world: World) -> list[int]:
    """Every number that a reader of the sink sees."""
    found = []
    for path, data in world.files.items():
        if path.startswith(f"{SINK}/step="):
            found += [json.loads(line)["n"] for line in data.decode().splitlines()]
    return sorted(found)
