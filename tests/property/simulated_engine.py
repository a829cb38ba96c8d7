"""The embedded engine itself on a store that fails, by a seed: what `simulated` does with a driver as simple as one can
be, with the real one. Between any two requests it may be killed, answered wrongly, or suspended while another engine
takes over, a command is given, a savepoint is made or dropped, or the job goes back.

Its input are the numbers from 0 on, each of which arrives on two streams with one step; they are joined, so every
number is one result. A driver that does a step again takes as many numbers as the seed says then.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pyarrow as pa

import midstream as ms
from midstream.checkpoint.command_log import CommandLog
from midstream.checkpoint.epochs import Holder
from midstream.commands.migrate import Migrate
from midstream.commands.rescale import Rescale
from midstream.model.errors import MidstreamError, ReadError, UndeliveredError, WriteError
from midstream.storage import files, places
from midstream.storage.process_resources import RESOURCES
from tests.property.simulated_store import Killed, SimulatedBucket, SimulatedFolder, SimulatedLibrary, World

SECOND = 1_000_000
HERE = Holder.here()
WINDOW = "[RANGE 3 SECONDS]"
QUERY = f"SELECT A.n FROM A {WINDOW}, B {WINDOW}, C {WINDOW} WHERE A.n = B.n AND B.n = C.n"
PLANS = ("((A B) C)", "(A (B C))")
STRATEGIES = ("moving_state", "parallel_track", "jisc")


class OneThread(ms.Engine):
    """An engine whose lanes are done one after the other, so that a seed brings about the same every time."""

    def _each(self, do: Callable[[Any], Any], items: Sequence[Any]) -> Sequence[Any]:
        return [do(item) for item in items]


class Bucket(SimulatedBucket):
    """Of a store that nothing is kept of on this machine."""

    def is_near(self, name: str) -> bool:
        return False

    def drop_copy(self, name: str) -> bool:
        return False

    def at(self, folder: str) -> Bucket:
        return Bucket(self.world, self._key(folder))


def root(world: World) -> str:
    """Where the world's files are."""
    return "s3://world" if world.objects else "/world"


@contextmanager
def inside(world: World) -> Iterator[None]:
    """Have every path and URL lead into the world."""

    class Folder(SimulatedFolder):
        def __init__(self, path: str, *, durable: bool = True) -> None:
            super().__init__(world, str(path).removeprefix("/"))

        @property
        def url(self) -> str:
            return f"/{self.prefix}"

        def at(self, folder: str) -> Folder:
            return Folder(self._path(folder))

    with ExitStack() as stack:
        for target, value in {
            "secrets.token_hex": lambda size=8: f"{world.chance.getrandbits(32):08x}",
            "midstream.storage.objects._library": lambda: SimulatedLibrary,
            "midstream.storage.places.ObjectStorage": lambda url: Bucket(
                world, url.removeprefix("s3://world").strip("/")
            ),
            "midstream.storage.places.LocalStorage": Folder,
        }.items():
            stack.enter_context(patch(target, value))
        stack.enter_context(patch.object(Holder, "here", lambda: HERE))
        yield


def forget() -> None:
    """What a process remembers of chunks is gone with it."""
    RESOURCES.forget(files.OPENED)


def rows(numbers: range) -> dict[str, pa.Table]:
    times = pa.array([number * SECOND // 2 for number in numbers], pa.timestamp("us", "UTC"))
    return dict.fromkeys("ABC", pa.table({"n": pa.array(numbers, pa.int64()), "ts": times}))


def drive(world: World, steps: int) -> None:
    """An engine that takes the checkpoint over and does some steps, from wherever that is."""
    forget()
    engine = OneThread(checkpoint=f"{root(world)}/checkpoint", take_over=True, durable=False, threads=1)
    try:
        for name in "ABC":
            engine.create_stream(name, "n BIGINT, ts TIMESTAMP", timestamp="ts")
        engine.add_query("q", QUERY, PLANS[0], ms.sinks.files(f"{root(world)}/sink", format="json"))
        engine.optimize(mode="off")
        for _ in range(steps):
            patiently(world, engine)
    except MidstreamError:
        engine.close()
        raise
    engine.close()


def patiently(world: World, engine: ms.Engine) -> None:
    """Push again where a step fails for a reason outside, a few times."""
    for attempt in range(4):
        first = taken(engine)
        numbers = range(first, min(first + world.chance.randrange(1, 4), world.inputs))
        try:
            engine.push(rows(numbers))
        except UndeliveredError:
            world.note("undelivered")
        except (ReadError, WriteError):
            if attempt == 3 or world.chance.random() < 0.3:
                raise
            world.note("done again")
            continue
        return


def taken(engine: ms.Engine) -> int:
    """How many numbers have been read."""
    progress = engine.manifest.progress.get("A")
    return progress.rows if progress is not None else 0


def disturb(world: World) -> None:
    """Something else happens to the checkpoint."""
    try:
        what = world.chance.random()
        if what < 0.15:
            found = ms.open(f"{root(world)}/checkpoint")
            steps = [step for step in found.steps if step >= 0]
            if steps:
                found.rewind(world.chance.choice(steps), take_over=True)
                world.note("went back")
        elif what < 0.25:
            found = ms.open(f"{root(world)}/checkpoint")
            name = world.chance.choice(("one", "other"))
            (found.drop_savepoint if world.chance.random() < 0.4 else found.savepoint)(name)
            world.note("savepoints")
        elif what < 0.45:
            log = CommandLog(places.storage_at(f"{root(world)}/checkpoint/commands"))
            if world.chance.random() < 0.5:
                log.append(Rescale(world.chance.randrange(1, 4)))
            else:
                log.append(Migrate("q", world.chance.choice(PLANS), world.chance.choice(STRATEGIES), {}))
            world.note("commanded")
        else:
            drive(world, world.chance.randrange(1, 4))
    except (Killed, MidstreamError):
        return


def run(seed: int, objects: bool = False, inputs: int = 10, dangers: int = 25) -> World:
    """Disturb a job until it has seen some trouble, then let it end undisturbed."""
    world = World(random.Random(seed), inputs, dangers, objects, disturb)
    with inside(world):
        for _ in range(world.chance.randrange(2, 5)):
            disturb(world)
        world.dangers = 0
        done = 0
        while done < world.inputs:
            drive(world, 1)
            done = read(world)
        while world.late:
            world.arrive()
        drive(world, 0)
    return world


def read(world: World) -> int:
    """How many numbers the newest step has read."""
    manifest = ms.open(f"{root(world)}/checkpoint").manifest()
    return manifest.progress["A"].rows if "A" in manifest.progress else 0
