"""Most files of a large manifest hold what differs: how much is written, and that every step is read as it was."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from midstream.checkpoint import manifest_file
from midstream.checkpoint.manifest_file import BASE, difference, patched
from midstream.checkpoint.manifest_log import ManifestLog
from midstream.checkpoint.savepoints import Savepoints
from midstream.checkpoint.writer import Writer
from midstream.model.counters import Counters
from midstream.model.errors import CheckpointError, SinkError
from midstream.model.ids import CounterKey, LaneId, OperatorId, StateId
from midstream.model.manifest import ChunkRef, LaneState, Manifest, OutputFile, Published, QueryEntry, StateListing
from midstream.storage import disk
from midstream.storage.local import LocalStorage
from tests.drawing import seeds
from tests.unit.building import unbound
from tests.unit.checkpoint.manifests import failing

STATES = [StateId("A", "0", part) for part in ("rows", "scan", "1a2b3c")]


def wide(lanes: int, queries: int = 3) -> Manifest:
    """A manifest of a job of so many lanes, each with three states of four chunks."""
    states = {LaneId("key-0", lane): lane_of(lane, 0) for lane in range(lanes)}
    asked = {
        f"q{n}": QueryEntry(unbound(f"SELECT A.k FROM A, B WHERE A.k > {n}"), "(A B)", 0, "key-0")
        for n in range(queries)
    }
    counted = {CounterKey("key-0", OperatorId("join", f"q{n}")): Counters(n) for n in range(queries)}
    return Manifest(job="j", lanes=max(lanes, 1), lane_states=states, queries=asked, operators=counted)


def lane_of(lane: int, step: int) -> LaneState:
    chunks = tuple(chunk(lane, step, number) for number in range(4))
    return LaneState({id: StateListing(chunks, 40, 7) for id in STATES}, {"q0": {"box": "plan", "plan": "(A B)"}})


def chunk(lane: int, step: int, number: int) -> ChunkRef:
    return ChunkRef(f"key-0.{lane}/{step:08d}-A-{number}", 10, 640, 0xDEADBEEF, number, {"ts": (1, step)})


def touched(manifest: Manifest, lanes: list[int], step: int) -> Manifest:
    """The next step, in which each state of some lanes gets a chunk and loses one."""
    states = dict(manifest.lane_states)
    for lane in lanes:
        before = states[LaneId("key-0", lane)]
        new = {
            id: replace(listing, chunks=(*listing.chunks[1:], chunk(lane, step, at)))
            for at, (id, listing) in enumerate(before.states.items())
        }
        states[LaneId("key-0", lane)] = replace(before, states=new)
    return replace(manifest, step=step, lane_states=states)


def begun(root: Path, manifest: Manifest, keep: int = 10) -> tuple[Writer, Manifest]:
    writer = Writer.take(ManifestLog(root, keep=keep), take_over=True)
    return writer, writer.begin(manifest)


def sizes(root: Path) -> list[int]:
    return [path.stat().st_size for path in sorted(root.glob("*.json"))]


def is_difference(path: Path) -> bool:
    return BASE in json.loads(path.read_bytes())["value"]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_file, "LEAST", 1)


def written(root: Path, lanes: int, each: int, steps: int = 64) -> float:
    """The bytes that a step writes of its manifest on average, in which so many of the lanes get rows."""
    log = ManifestLog(root, keep=1000)
    writer = Writer.take(log)
    manifest = writer.begin(wide(lanes))
    before = sum(sizes(root))
    for step in range(steps):
        manifest = touched(manifest, [(step * each + one) % lanes for one in range(each)], step)
        writer.commit(manifest)
    assert log.latest() == manifest
    return (sum(sizes(root)) - before) / steps


def test_what_a_step_writes_goes_with_the_lanes_that_it_touches(tmp_path: Path) -> None:
    one, four = written(tmp_path / "1", 256, 1), written(tmp_path / "4", 256, 4)
    whole, more = sizes(tmp_path / "1")[0], written(tmp_path / "more", 1_000, 1)
    assert whole > 300_000 and one < whole / 30, (whole, one)
    # With more changes a whole manifest is due within these steps.
    assert one < four < 6 * one and more < 1.5 * one, (one, four, more)


def test_small_manifests_and_savepoints_are_whole(tmp_path: Path) -> None:
    writer, manifest = begun(tmp_path / "manifests", wide(3))
    for step in range(5):
        writer.commit(manifest := touched(manifest, [0], step))
    assert not any(map(is_difference, (tmp_path / "manifests").glob("*.json")))
    writer, manifest = begun(tmp_path / "large", wide(256))
    for step in range(5):
        writer.commit(manifest := touched(manifest, [0], step))
    assert [is_difference(path) for path in sorted((tmp_path / "large").glob("*.json"))] == [False, *[True] * 5]
    Savepoints(LocalStorage(tmp_path)).add("kept", replace(manifest, lane_states={}))
    assert not is_difference(tmp_path / "savepoints" / "kept.json")


def changed(manifest: Manifest, draw: random.Random, step: int) -> Manifest:
    lanes = [lane.number for lane in manifest.lane_states]
    manifest = touched(manifest, draw.sample(lanes, draw.randrange(len(lanes) + 1)), step)
    queries, counted = dict(manifest.queries), dict(manifest.operators)
    if draw.random() < 0.3 and len(queries) > 1:
        del queries[draw.choice(sorted(queries))]
    if draw.random() < 0.3:
        queries[f"q{draw.randrange(9)}"] = QueryEntry(unbound(f"SELECT {step}"), "(A B)", step)
    for key in counted:
        if draw.random() < 0.2:
            counted[key] += Counters(draw.randrange(3))
    if draw.random() < 0.1:
        queries = dict(reversed(queries.items()))
    (first, *_), count = queries, draw.randrange(4)
    published = Published(
        files=tuple(OutputFile("results", first, f"part-{step}", draw.randrange(5)) for _ in range(count))
    )
    return replace(manifest, queries=queries, operators=counted, published=published)


@pytest.mark.parametrize("seed", seeds(40))
def test_every_kept_step_is_read_as_it_was(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over writes that fail, steps that are published again, drivers that begin anew and jobs that go back."""
    draw = random.Random(seed)
    monkeypatch.setattr(manifest_file, "LEAST", draw.choice((1, 1, 8_000)))
    monkeypatch.setattr(manifest_file, "MOST", draw.choice((4, 16, 256)))
    keep, root = draw.choice((1, 4, 10)), tmp_path / "manifests"
    writer, manifest = begun(root, wide(draw.choice((1, 6, 20))), keep)
    reader, stood, step = ManifestLog(root, keep=keep), dict[int, Manifest](), 0
    for _ in range(60):
        chance, then = draw.random(), changed(manifest, draw, step)
        if chance < 0.1:
            with monkeypatch.context() as patched_disk:
                patched_disk.setattr(disk.os, "replace", failing(OSError(28, "No space left on device")))
                with pytest.raises(SinkError):
                    writer.commit(then)
        elif chance < 0.2 and step:
            writer.commit(manifest := replace(then, step=step - 1))
            stood[step - 1] = manifest
        elif chance < 0.25 and step:
            writer, manifest = begun(root, manifest, keep)
            stood[step - 1] = manifest
        elif chance < 0.3 and len(reader.steps()) > 1:
            back = draw.choice(reader.steps())
            ManifestLog(root, keep=keep).rewind(back, take_over=True)
            newest = ManifestLog(root, keep=keep).latest()
            assert newest is not None
            stood, step = {old: one for old, one in stood.items() if old < back}, back + 1
            writer, manifest = begun(root, newest, keep)
            stood[back] = manifest
        else:
            writer.commit(manifest := then)
            stood[step], step = manifest, step + 1
        for log in (reader, ManifestLog(root, keep=keep)):
            assert log.latest() == manifest
            for kept in log.kept():
                assert replace(kept, epochs=()) == replace(stood.get(kept.step, kept), epochs=())
    assert len(list(root.glob("*.json"))) <= 2 * 256 + keep


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("harm", ["missing", "garbled", "other"])
def test_a_file_that_others_differ_from_is_missed(harm: str, tmp_path: Path) -> None:
    writer, manifest = begun(tmp_path / "manifests", wide(9))
    for step in range(3):
        writer.commit(manifest := touched(manifest, [step], step))
    base, _, middle, newest = sorted((tmp_path / "manifests").glob("*.json"))
    assert not is_difference(base) and is_difference(newest)
    hurt = middle if harm == "garbled" else base
    match harm:
        case "missing":
            hurt.unlink()
        case "garbled":
            hurt.write_bytes(hurt.read_bytes()[:-9])
        case "other":
            hurt.write_bytes(manifest_file.seal({**json.loads(hurt.read_bytes())["value"], "seed": 99}))
    expected = {
        "missing": f"it holds what differs from {base.name}, which is missing",
        "garbled": "the file is damaged",
        "other": f"it holds what differs from {base.name}, and that is not the file it was written after",
    }
    with pytest.raises(CheckpointError, match=expected[harm]) as caught:
        ManifestLog(tmp_path / "manifests").latest()
    assert "restore the file" in caught.value.remedy
    with pytest.raises(CheckpointError):
        ManifestLog(tmp_path / "manifests").kept()
    assert ManifestLog(tmp_path / "manifests").steps() in ((), (-1, 0, 1, 2))


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(
    "value",
    [
        {"base": 5, "difference": {}}, {"base": {"name": "../x.json", "crc32": 1}, "difference": {}},
        {"base": {"name": "000001-000000000009.json", "crc32": 1}, "difference": {}}, {"base": {}, "difference": {}},
        {"base": {"name": None, "crc32": 1}, "difference": {}},
    ],
)  # fmt: skip
def test_nonsense_is_refused(value: dict[str, object], tmp_path: Path) -> None:
    begun(tmp_path / "manifests", replace(wide(2), step=1))
    path = tmp_path / "manifests" / "000001-000000000002.json"
    path.write_bytes(disk.seal({"format": 5, **value}))
    with pytest.raises(CheckpointError) as caught:
        ManifestLog(tmp_path / "manifests").latest()
    assert caught.value.place == str(path) and "go back to step 1" in caught.value.remedy


def value(draw: random.Random, depth: int = 0) -> object:
    chance = draw.random()
    if depth > 3 or chance < 0.35:
        return draw.choice([None, True, False, 0, 1, 0.0, -0.0, 1.0, "a", "", float("inf")])
    if chance < 0.7:
        return {draw.choice("abcdefgh"): value(draw, depth + 1) for _ in range(draw.randrange(5))}
    return [value(draw, depth + 1) for _ in range(draw.randrange(6))]


def altered(draw: random.Random, old: object) -> object:
    if draw.random() < 0.15:
        return value(draw)
    if isinstance(old, dict):
        new = {k: altered(draw, v) if draw.random() < 0.3 else v for k, v in old.items() if draw.random() > 0.1}
        if draw.random() < 0.3:
            new[draw.choice("abcdefgh")] = value(draw)
        return dict(reversed(new.items())) if draw.random() < 0.05 else new
    if isinstance(old, list):
        items = [altered(draw, v) if draw.random() < 0.2 else v for v in old if draw.random() > 0.15]
        items.insert(draw.randrange(len(items) + 1), value(draw))
        return items
    return old


def test_a_difference_makes_the_new_value_of_the_old_one() -> None:
    found = 0
    for seed in range(4_000):
        draw = random.Random(seed)
        old = {"a": value(draw), "b": value(draw)}
        new = altered(draw, old)
        told = difference(old, new)
        if told is not None:
            found += 1
            before, made = json.dumps(old), patched(json.loads(json.dumps(old)), json.loads(json.dumps(told)))
            assert (json.dumps(made), json.dumps(old)) == (json.dumps(new), before), seed
    assert found > 2_000
