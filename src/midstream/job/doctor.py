"""What is wrong with a checkpoint, and what would mend it: one check a function, all of them in `CHECKS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from midstream.checkpoint.reader import Checkpoint
from midstream.job.carried_log import CARRIED
from midstream.job.folders import Folders
from midstream.job.outputs import JobOutput, Outputs
from midstream.job.reconcile import HOST, SPARK
from midstream.job.spark_log import offsets_of
from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.ids import StateId
from midstream.model.manifest import ChunkRef, Manifest
from midstream.sinks import FileSink, Sink
from midstream.state.store.files import FileStore, file_of, forget_opened
from midstream.state.store.places import Place
from midstream.state.sweep import listed, sweep

ASIDE = "damaged"
"""The folder of the checkpoint that damaged files are moved to: nothing is removed that somebody may want."""


@dataclass(frozen=True)
class Finding:
    """Something that is wrong: what, where, and what would mend it.

    What is `harmless` only takes space, or says nothing certain. `mend` does it where nothing can be lost.
    """

    check: str
    problem: str
    place: str
    remedy: str
    harmless: bool = False
    mend: Callable[[], object] | None = field(default=None, compare=False, repr=False)

    def to_json(self) -> dict[str, Any]:
        """Its fields, but for how it is mended; `mendable` says whether it can be."""
        own = {name: value for name, value in vars(self).items() if name != "mend"}
        return {**own, "mendable": self.mend is not None}


@dataclass(frozen=True)
class Patient:
    """A checkpoint under examination; what several checks look at is read once."""

    folders: Folders
    claim: str = ""
    """The token of the examiner's own claim, if it has one."""

    @cached_property
    def newest(self) -> Manifest | None:
        """The newest manifest, if it can be read."""
        try:
            return self.folders.manifests.latest()
        except CheckpointError:
            return None

    @cached_property
    def kept(self) -> dict[str, Manifest]:
        """By what they are called the manifests that can be read: those of kept steps, and savepoints."""
        found = {}
        for step in self.folders.manifests.steps():
            try:
                found[f"step {step}"] = self.folders.manifests.read(step)
            except CheckpointError:
                continue
        for name in self.folders.savepoints.names():
            try:
                found[f"savepoint {name}"] = self.folders.savepoints.read(name)
            except CheckpointError:
                continue
        return found

    @property
    def all_read(self) -> bool:
        """Whether nothing is kept but what can be read."""
        kept = len(self.folders.manifests.steps()) + len(self.folders.savepoints.names())
        return self.newest is not None and len(self.kept) == kept

    @cached_property
    def is_held(self) -> bool:
        """Whether a process has the checkpoint that is not known to have ended."""
        try:
            claim = self.folders.manifests.epochs.newest()
        except CheckpointError:
            return True
        held = claim is not None and not claim.released and not claim.holder.is_gone
        return held and claim is not None and claim.token != self.claim

    def aside(self, name: str) -> Callable[[], object]:
        """Move a file of the checkpoint to `ASIDE`."""
        return lambda: self.folders.storage.move(name, f"{ASIDE}/{name}")

    def sinks(self) -> Iterator[tuple[JobOutput, Sink]]:
        """The outputs of the newest manifest and their sinks, but for functions."""
        if self.newest is not None and self.newest.job:
            yield from Outputs(self.folders, {}).named_sinks(self.newest)


def manifests(patient: Patient) -> Iterator[Finding]:
    """Every kept manifest and savepoint can be read."""
    log, newest = patient.folders.manifests, None
    try:
        newest = log.latest()
    except CheckpointError as error:
        yield Finding("manifests", error.message, error.place, error.remedy)
    for step in log.steps():
        try:
            log.read(step)
        except CheckpointError as error:
            name = error.place.rpartition("/")[2]
            # Without the newest it is not known which of the others count.
            mend = patient.aside(f"manifests/{name}") if newest is not None else None
            yield Finding("manifests", error.message, error.place, f"move it to {ASIDE}: no job needs it", mend=mend)
    for name in patient.folders.savepoints.names():
        try:
            patient.folders.savepoints.read(name)
        except CheckpointError as error:
            yield Finding("manifests", error.message, error.place, error.remedy)


def chunks(patient: Patient) -> Iterator[Finding]:
    """Every chunk that a kept manifest lists is there, and its checksum is right."""
    store, bad = FileStore(patient.folders.chunks), dict[str, tuple[StateId, CheckpointError]]()
    seen: set[str] = set()
    for manifest in patient.kept.values():
        for id, ref in _listed(manifest):
            if ref.name not in seen:
                seen.add(ref.name)
                forget_opened([store.storage.place(file_of(ref.name))])
                try:
                    store.get(ref)
                except CheckpointError as error:
                    bad[ref.name] = (id, error)
    there = {f"step {step}" for step in patient.folders.manifests.steps()}
    whole = [called for called, one in patient.kept.items() if not bad.keys() & set(listed(one))]
    for name, (id, fault) in bad.items():
        listing = [called for called, one in patient.kept.items() if name in set(listed(one))]
        if all(called.startswith("step") and called not in there for called in listing):
            continue  # The job has gone on, and swept it away, since the manifests were read.
        if id.is_base:
            way = f"go back to {whole[-1]}, the newest that is whole" if whole else "no kept step is whole"
            yield Finding("chunks", f"{fault.message}; in {', '.join(listing)}", fault.place, f"restore it, or {way}")
        else:
            remedy = "none is needed: it is computed again from base rows with the next step"
            yield Finding("chunks", f"{fault.message}; in {', '.join(listing)}", fault.place, remedy, harmless=True)


def orphans(patient: Patient) -> Iterator[Finding]:
    """No file is there that nobody will use. A job that runs has such, and removes them in time."""
    if patient.is_held or not patient.all_read:
        return
    listing = {file_of(chunk) for one in patient.kept.values() for chunk in listed(one)}
    saved = {ref["name"] for one in patient.kept.values() for ref in _tables(one)}
    store = patient.folders.chunks
    there = [name for name, _ in store.walk()]
    loose = [name for name in there if name not in listing and name not in map(file_of, saved)]
    if loose and not saved:
        yield Finding(
            "orphans",
            f"{len(loose)} files that no kept manifest lists, such as {loose[0]}",
            store.url,
            "remove them; a job does so in time",
            harmless=True,
            mend=lambda: sweep(store, patient.kept.values()),
        )
    halves = [name for name, _ in patient.folders.storage.walk() if name.endswith(".tmp") and "/spark/" not in name]
    if halves:
        yield Finding(
            "orphans",
            f"{len(halves)} files that were never finished, such as {halves[0]}",
            patient.folders.storage.url,
            "remove them",
            harmless=True,
            mend=lambda: patient.folders.storage.remove(halves),
        )


def commands(patient: Patient) -> Iterator[Finding]:
    """Every command that no step has taken yet is there and can be read."""
    log, newest = patient.folders.commands, patient.newest
    taken = newest.last_command if newest else 0
    numbers = log.numbers()
    for number in numbers:
        try:
            log.read(number)
        except CheckpointError as error:
            name = f"commands/{error.place.rpartition('/')[2]}"
            yield Finding("commands", error.message, error.place, error.remedy, mend=patient.aside(name))
    for number in sorted(set(range(taken + 1, max(numbers, default=0))) - set(numbers)):
        yield Finding(
            "commands",
            f"command {number} is missing",
            log.storage.url,
            "restore the file, or give the command again, unless you have withdrawn it",
            harmless=True,
        )


def events(patient: Patient) -> Iterator[Finding]:
    """Every file of events can be read."""
    log = patient.folders.events
    for name in sorted(patient.folders.storage.names("events")):
        try:
            log.check(name)
        except CheckpointError as error:
            yield Finding("events", error.message, error.place, error.remedy, mend=patient.aside(f"events/{name}"))


def claims(patient: Patient) -> Iterator[Finding]:
    """Who may write the checkpoint can be read."""
    try:
        patient.folders.manifests.epochs.newest()
    except CheckpointError as error:
        yield Finding("claims", error.message, error.place, error.remedy)


def sinks(patient: Patient) -> Iterator[Finding]:
    """Every sink has the steps of this time line that are done, and no others."""
    manifest = patient.newest
    for output, sink in patient.sinks():
        assert manifest is not None
        try:
            yield from _ahead(patient, manifest, output, sink)
            yield from _behind(patient, manifest, output, sink)
        except MidstreamError as error:
            yield Finding("sinks", error.message, error.place or output.place, error.remedy)


def _ahead(patient: Patient, manifest: Manifest, output: JobOutput, sink: Sink) -> Iterator[Finding]:
    stamp, line = sink.newest(output.name), manifest.time_line
    if stamp is None:
        return
    if line.gave_up(stamp):
        yield Finding(
            "sinks",
            f"step {stamp.step} is there, which the job gave up when it went back",
            output.place,
            "take it out; the next start does so",
            mend=lambda: sink.forget_after(output.name, manifest.step, line.gave_up),
        )
    elif stamp.job not in ("", manifest.job):
        problem = f"the sink has results of another job, {stamp.job}, up to step {stamp.step}"
        yield Finding("sinks", problem, output.place, "give the query a sink of its own, or empty this one")
    elif stamp.step > manifest.step or (stamp.job and not line.has(stamp)):
        if patient.is_held and (patient.folders.manifests.latest() or manifest).step >= stamp.step:
            return  # The job has done a step meanwhile.
        yield Finding(
            "sinks",
            f"the sink has step {stamp.step}, which is not of this checkpoint: its newest step is {manifest.step}",
            output.place,
            f"if an older checkpoint was restored: midstream rewind {patient.folders.root} {manifest.step}",
        )


def _behind(patient: Patient, manifest: Manifest, output: JobOutput, sink: Sink) -> Iterator[Finding]:
    # The newest step may not have been delivered yet: whoever takes the checkpoint up does that.
    due = [one for called, one in patient.kept.items() if called.startswith("step") and one.step < manifest.step]
    steps = [one.step for one in due if any((k, n) == output for k, n, *_ in one.published.get("files", ()))]
    if isinstance(sink, FileSink):
        missing = [step for step in steps if not sink.has(step)]
    else:
        newest = sink.newest(output.name)
        missing = [step for step in steps if newest is not None and step > newest.step]
    if missing:
        yield Finding(
            "sinks",
            f"results of step {', '.join(map(str, missing))} are missing",
            output.place,
            f"restore them, or have them done again: midstream rewind {patient.folders.root} {missing[0] - 1}",
        )


def spark(patient: Patient) -> Iterator[Finding]:
    """Spark's offsets are those of the steps that are done."""
    manifest = patient.newest
    if manifest is None or not manifest.job or manifest.published.get(HOST, SPARK) != SPARK or manifest.step < 0:
        return
    if patient.folders.is_remote:
        if CARRIED not in manifest.published:
            problem, remedy = "the newest manifest does not carry Spark's log", "go back to a step that does"
            yield Finding("spark", problem, patient.folders.root, remedy)
        return
    offsets = offsets_of(patient.folders.spark)
    if manifest.step not in offsets:
        yield Finding(
            "spark",
            f"Spark does not know where step {manifest.step}, the newest, ended",
            patient.folders.spark,
            "restore the folder, or go back to a step that it knows",
        )
    given_up = max((epoch.abandoned or -1 for epoch in manifest.epochs), default=-1)
    if not patient.is_held and max(offsets, default=-1) > max(manifest.step, given_up) + 1:
        yield Finding(
            "spark",
            f"Spark has begun batch {max(offsets)}, but the newest manifest is of step {manifest.step}",
            patient.folders.spark,
            "restore the folder `manifests`; otherwise those steps are done again, if the sinks are not ahead",
        )


CHECKS = (manifests, chunks, orphans, commands, events, claims, sinks, spark)
"""In the order in which they are made."""


@dataclass(frozen=True)
class Examined:
    """What an examination found, and which of that it has mended."""

    findings: tuple[Finding, ...]
    mended: tuple[Finding, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether nothing is left that does harm."""
        return all(one.harmless or one in self.mended for one in self.findings)


def examine(place: Place, *, repair: bool = False) -> Examined:
    """Read everything of a checkpoint; with `repair`, mend what can be mended without losing anything.

    To look never disturbs a job that runs; to repair raises `HeldCheckpointError` where one may.
    """
    url = Checkpoint.open(place).url
    if not repair:
        return Examined(tuple(_found(Patient(Folders(url)))))
    epochs = Folders(url).manifests.epochs
    claim = epochs.claim()
    try:
        findings = tuple(_found(Patient(Folders(url), claim.token)))
        mended = tuple(one for one in findings if one.mend is not None)
        for one in mended:
            if one.mend is not None:
                one.mend()
        return Examined(findings, mended)
    finally:
        epochs.release(claim)


def _found(patient: Patient) -> Iterator[Finding]:
    for check in CHECKS:
        yield from check(patient)


def _listed(manifest: Manifest) -> Iterator[tuple[StateId, ChunkRef]]:
    for lane in manifest.lane_states.values():
        for id, listing in lane.states.items():
            yield from ((id, ref) for ref in listing.chunks)


def _tables(manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The late rows and dead letters that a saved engine keeps as chunks."""
    for kind in ("late", "dead_letters"):
        yield from (ref for ref in manifest.published.get(kind, {}).values() if ref)
