"""What a job puts out: each query's results, each stream's late rows and dead letters; all of it goes to sinks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa

from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED, Folders, new_sink
from midstream.commands.base import taken
from midstream.logical.query import query_of
from midstream.model.command import Command
from midstream.model.errors import CheckpointError, MidstreamError, SinkError
from midstream.model.manifest import Manifest, OutputFile
from midstream.model.time_line import Stamp
from midstream.sinks import FileSink, Frames, FunctionSink, Sink, StagedStep, Staging, as_sink, restored
from midstream.sinks.contract import STAGING, anything, step_of
from midstream.sinks.file_sink import check_apart
from midstream.sinks.formats import check_types, read_back
from midstream.storage.storage_contract import Storage
from midstream.units.user_operators import result_columns

RESULTS = "results"


class JobOutput(NamedTuple):
    """One of `RESULTS` of a query and what of it is `REJECTED`, or of `LATE` and `DEAD_LETTERS` of a stream."""

    kind: str
    name: str

    @property
    def place(self) -> str:
        """What it is, for messages."""
        if self.kind == RESULTS:
            return f"query {self.name}"
        return f"{self.kind} of {'query' if self.kind == REJECTED else 'stream'} {self.name}"


def _sink_text(sink: Sink) -> str:
    named = sink.to_json()
    return str(named.get("path") or named.get("table") or named.get("function") or sink.name)


@dataclass(frozen=True)
class _Copied(Sink):
    """A sink of files, and another one that gets the same steps first."""

    files: FileSink
    other: Sink

    @property
    def target(self) -> str:
        return self.other.target

    def to_json(self) -> dict[str, Any]:
        return {**self.files.to_json(), "copied": self.other.to_json()}

    def open(self) -> None:
        self.files.open()
        self.other.open()

    def close(self) -> None:
        self.other.close()

    def staging(self, scratch: Storage) -> Staging:
        return self.files.staging(scratch)

    def commit(self, staged: StagedStep) -> None:
        # Where this is cut short and done again, the other one knows that it has the step, or the files are still here.
        self.other.commit(self._staged_for_other(staged))
        self.files.commit(staged)

    def _staged_for_other(self, staged: StagedStep) -> StagedStep:
        scratch = staged.staging.storage
        own = self.other.staging(scratch)
        if own.storage == scratch.at(STAGING):  # It reads the files of any folder that it is given.
            return staged
        # It moves files that are staged in a place of its own, as files of results are.
        own = own.of(staged.stamp)
        stems = [file.removeprefix(own.prefix).rpartition(".")[0] for file in staged.files]
        if staged.is_there:
            for stem, file in zip(stems, staged.files, strict=True):
                own.write(stem, read_back(scratch.read(file), file))
        return replace(staged, staging=own, files=tuple(f"{own.prefix}{stem}.{own.format}" for stem in stems))

    def write(self, staged: StagedStep) -> None:
        self.commit(staged)

    def newest(self, name: str) -> Stamp | None:
        return self.other.newest(name)

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        self.other.check_forget(name, step, given_up)
        self.files.check_forget(name, step, given_up)

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        self.other.forget_after(name, step, given_up)
        self.files.forget_after(name, step, given_up)


@dataclass
class Outputs:
    """The outputs of a job and the sinks they go to.

    `sinks` are those that its script, or a call while it runs, names; all others are made of what manifests name.
    `frames` makes what the host hands to functions; `tasks_end` says whether all tasks of a step have ended when it is
    committed, and `own` are commands that the job's script stands for. The sinks of `dead_letters`, by stream, get what
    the files of the checkpoint get. `_ready` are those that are open, `_fitting` the queries whose columns their sinks
    take. A fault of the sink of a query that the next step drops stops nothing.
    """

    folders: Folders
    sinks: dict[str, Sink]
    frames: Frames | None = None
    tasks_end: bool = False
    own: tuple[Command, ...] = ()
    dead_letters: dict[str, Sink] = field(default_factory=dict)
    _ready: frozenset[JobOutput] = field(default=frozenset(), init=False)
    _fitting: Set[str] = field(default=frozenset(), init=False)

    def open(self, manifest: Manifest) -> None:
        """Make every sink of the script ready; the manifest is the newest."""
        for query, sink in self.sinks.items():
            with self._unless_dropped(JobOutput(RESULTS, query), manifest):
                sink.open()

    def close(self, manifest: Manifest) -> None:
        """Have the sinks of a job that ends let go of their connections."""
        for sink in self.sinks.values():
            sink.close()
        with suppress(MidstreamError):  # One that cannot be made has no connection.
            for _, sink in self.named_sinks(manifest):
                sink.close()

    @contextmanager
    def adding(self, query: str, sink: Sink) -> Iterator[None]:
        """Register a new query's sink before its command is logged, since a step may take the command at once.

        If the command is refused, the sinks are as before.
        """
        before = self.sinks.get(query)
        if isinstance(sink, FunctionSink):
            self.sinks[query] = sink
        try:
            yield
        except MidstreamError:
            self.sinks.pop(query, None)
            self.sinks.update({} if before is None else {query: before})
            raise

    def named(self, manifest: Manifest) -> Manifest:
        """Write the sink of every query into the manifest."""
        copied = self.dead_letter_sinks()
        if manifest.published.dead_letter_sinks != copied:
            manifest = replace(manifest, published=replace(manifest.published, dead_letter_sinks=copied))
        asked = {name: entry for name, entry in manifest.queries.items() if not entry.part}
        sinks = {name: self._results(name, entry.sink).to_json() for name, entry in asked.items()}
        if all(sinks[name] == entry.sink for name, entry in asked.items()):
            return manifest
        entries = {name: replace(entry, sink=sinks[name]) for name, entry in asked.items()}
        return replace(manifest, queries={**manifest.queries, **entries})

    def dead_letter_sinks(self) -> dict[str, Any]:
        """Return what a manifest says of the sinks of dead letters."""
        return {name: sink.to_json() for name, sink in self.dead_letters.items()}

    def check(self, manifest: Manifest) -> None:
        """Check that no sink is ahead of the manifest, or has results of another time line: rows would be lost.

        What the job gave up when it went back is taken out of the sinks, if that was cut short then.
        """
        self._refuse_shared(manifest)
        self._for_each(manifest, lambda output, sink: self._check(output, sink, manifest))

    def _refuse_shared(self, manifest: Manifest) -> None:
        found = list[tuple[JobOutput, Sink]]()
        self._for_each(manifest, lambda *one: found.append(one))
        check_apart((output.place, sink.target) for output, sink in found if sink.target)

    def _check(self, output: JobOutput, sink: Sink, manifest: Manifest) -> None:
        stamp, line = sink.newest(output.name), manifest.time_line
        if stamp is None:
            return
        if line.gave_up(stamp):
            sink.forget_after(output.name, manifest.step, line.gave_up)
        elif stamp.job not in ("", manifest.job):
            raise CheckpointError(
                f"the sink has results of another job, {stamp.job}, up to step {stamp.step}",
                place=f"{output.place}, sink {_sink_text(sink)}",
                remedy="give the query a sink of its own, or empty the sink",
            )
        elif stamp.step > manifest.step or (stamp.job and not line.has(stamp)):
            raise CheckpointError(
                f"the sink has results of step {stamp.step} that are not from this checkpoint, whose newest step is "
                f"{manifest.step}",
                place=f"{output.place}, sink {_sink_text(sink)}",
                remedy=f"if an older state of the checkpoint was restored, `midstream rewind {self.folders.root} "
                f"{manifest.step}` takes the later steps out of the sinks; the job then repeats these steps",
            )

    def stage(self, before: Manifest, manifest: Manifest) -> dict[JobOutput, Staging]:
        """Return where the tasks of a step write each output.

        What a broken-off attempt has left there has other names, and no manifest lists it.
        """
        outputs = tuple(self._outputs(manifest))
        if not self._ready.issuperset(outputs):
            self._refuse_shared(manifest)
        found = {}
        for output in outputs:
            sink = self._sink(output, manifest)
            if output not in self._ready:
                self._make_ready(output, sink, before, manifest)
            found[output] = self._staging(output, sink).of(manifest.time_line.stamp(manifest.step))
        self._ready = frozenset(found)
        return found

    def _make_ready(self, output: JobOutput, sink: Sink, before: Manifest, manifest: Manifest) -> None:
        sink.open()
        if output.kind == RESULTS:
            new = output.name not in before.queries
            if new:
                self._begin(output, sink, before)
            self._check_columns(output, sink, manifest, new=new)

    def stage_tables(
        self, before: Manifest, manifest: Manifest, tables: Mapping[JobOutput, pa.Table], attempt: str
    ) -> tuple[OutputFile, ...]:
        """Stage a step of a host that has it all in one process. `attempt` keeps apart those of a step that failed."""
        asked = set(manifest.asked_queries)
        if added := asked - before.queries.keys():
            self._refuse_shared(manifest)
        for query in added:
            output = JobOutput(RESULTS, query)
            sink = self._sink(output, manifest)
            sink.open()
            self._begin(output, sink, before)
        for query in asked - self._fitting:
            output = JobOutput(RESULTS, query)
            self._check_columns(output, self._sink(output, manifest), manifest, new=query in added)
        self._fitting = asked
        stamp, files = manifest.time_line.stamp(manifest.step), []
        for output, table in tables.items():
            if table.num_rows and not (output.kind == RESULTS and manifest.queries[output.name].part):
                staging = self._staging(output, self._sink(output, manifest)).of(stamp)
                if self.folders.unsynced is not None:
                    staging = staging.synced_with(self.folders.unsynced)
                files.append(OutputFile(*output, staging.write(f"rows-{attempt}", table), table.num_rows))
        return tuple(files)

    def check_sink(self, query: str, manifest: Manifest, before: Manifest) -> None:
        """Open the sink of a query of a manifest, and check that it is not ahead of the manifest before."""
        output = JobOutput(RESULTS, query)
        with self._unless_dropped(output, manifest):
            sink = self._sink(output, manifest)
            sink.open()
            self._check(output, sink, before)

    def check_new(self, query: str, value: dict[str, Any] | None, manifest: Manifest, before: Manifest) -> None:
        """Check that the results of a query that a manifest begins can go where a command says.

        Raises the `SinkError` or `CheckpointError` that the first step would fail with, again and again.
        """
        sink = new_sink(self.folders, manifest, query, value) or self._results(query, value)
        self.check_given(query, sink, manifest, before)

    def check_given(self, query: str, sink: Sink, manifest: Manifest, before: Manifest) -> None:
        """Check that a query's results can go to a sink that exists; raises the errors of `check_new`."""
        if sink.target:
            entries = [(name, entry.sink) for name, entry in manifest.queries.items() if entry.sink and name != query]
            others = [(name, restored(other, self.folders.results(name))) for name, other in entries]
            same = [name for name, other in others if other is not None and other.target == sink.target]
            check_apart((f"query {name}", sink.target) for name in (*same, query))
        sink.open()
        output = JobOutput(RESULTS, query)
        self._check(output, sink, before)
        self._check_columns(output, sink, manifest, new=True)

    def _check_columns(self, output: JobOutput, sink: Sink, manifest: Manifest, *, new: bool) -> None:
        # Files need not fit a query that ran already: it may never have had a row.
        entry, checks = manifest.queries[output.name], type(sink).check_columns is not Sink.check_columns
        typed = new and entry.operator is None  # An operator would be asked for its columns.
        if checks or typed:
            columns = result_columns(query_of(entry), entry.operator)
            if typed:
                check_types(columns, self._staging(output, sink).format, output.place)
            if checks:
                sink.check_columns(columns)

    def commit(self, manifest: Manifest, *, keeps: bool = False) -> None:
        """Commit in the sinks what the manifest's step has staged; may be called again.

        They are those that the manifest names, because the step is staged where they have it: where a query has another
        sink since, that one gets what comes after. The sink of a query that is dropped next may be gone, but only where
        nothing is staged for it any more. The staged files are removed, unless this `keeps` them.
        """
        for output, staged in self._staged_step(manifest).items():
            try:
                self._staged_for(output, manifest).commit(staged)
                if not keeps:
                    staged.staging.storage.remove(staged.files)
            except MidstreamError:
                if not self._is_dropped_next(output, manifest) or staged.is_partly_there:
                    raise

    def may_commit_aside(self, manifest: Manifest) -> bool:
        """Return whether a thread may commit the manifest's step while the next one is done."""
        return all(self._staged_for(output, manifest).aside for output in self._staged_step(manifest))

    def remove_staged(self, manifest: Manifest) -> None:
        """Remove what the manifest's step has staged, once the sinks have it."""
        for staged in self._staged_step(manifest).values():
            staged.staging.storage.remove(staged.files)

    def _staged_step(self, manifest: Manifest) -> dict[JobOutput, StagedStep]:
        by_output: dict[JobOutput, list[str]] = {}
        for kind, name, file, _ in manifest.published.files:
            by_output.setdefault(JobOutput(kind, name), []).append(file)
        line, step, found = manifest.time_line, manifest.step, dict[JobOutput, StagedStep]()
        for output, files in by_output.items():
            staging = self._staged_at(output, manifest).of(line.stamp(step))
            found[output] = StagedStep(output.name, step, line, staging, tuple(files), self.frames, self.tasks_end)
        return found

    def clear_step(self, manifest: Manifest) -> None:
        """Remove what attempts that broke off have staged of the manifest's step, once the sinks have that step."""
        stamp = manifest.time_line.stamp(manifest.step)
        self._for_each(manifest, lambda output, sink: self._staging(output, sink).of(stamp).clear())

    def clear(self, manifest: Manifest) -> None:
        """Remove what drivers of former epochs have staged, once the manifest's step is in the sinks."""
        self._for_each(manifest, lambda output, sink: clear_former(self._staging(output, sink), manifest))

    def _begin(self, output: JobOutput, sink: Sink, before: Manifest) -> None:
        # A driver that was killed amid the query's first step has staged there, and no manifest named the query then.
        self._check(output, sink, before)
        if len(before.epochs) > 1:
            clear_former(self._staging(output, sink), before)

    def give_up_later(self, manifest: Manifest) -> None:
        """Remove what others have staged of later steps than the manifest's, with which an epoch has begun.

        Those steps do not count. A driver that has lost the job, and does not know it yet, then has nothing to put in
        place; and what it did put there is taken out.
        """

        def give_up(output: JobOutput, sink: Sink) -> None:
            clear_later(self._staging(output, sink), manifest)
            self._check(output, sink, manifest)

        self._for_each(manifest, give_up)

    def check_forget(self, manifest: Manifest, others: Iterable[Manifest] = ()) -> None:
        """Check that every sink can take back what `forget_after` will have it take back; raises where one cannot."""
        for output, sink in self._each_once((*others, manifest)):
            sink.check_forget(output.name, manifest.step, left_by(manifest, sink))

    def forget_after(self, manifest: Manifest, others: Iterable[Manifest] = ()) -> tuple[str, ...]:
        """Take back from the sinks what steps later than the manifest's wrote.

        That includes the results of queries that only the `others` have.

        Returns: the queries whose results go to a function, which is not asked.

        Raises `LostCheckpointError` where another driver has taken over since the job went back: what that one did
        stays.
        """
        manifests, known = (*others, manifest), set[Stamp]()
        for output, sink in self._each_once(manifests):
            given_up = self._while_writing(left_by(manifest, sink), manifest, known)
            clear_later(self._staging(output, sink), manifest)
            sink.forget_after(output.name, manifest.step, given_up)
        entries = (item for one in manifests for item in one.queries.items())
        return tuple(sorted({query for query, entry in entries if "function" in (entry.sink or {})}))

    def _while_writing(
        self, left: Callable[[Stamp], bool], manifest: Manifest, known: set[Stamp]
    ) -> Callable[[Stamp], bool]:
        # Raises `LostCheckpointError` where another driver may have made what bears a stamp; `known` are the stamps
        # that are known to be of no other driver.
        def given_up(stamp: Stamp) -> bool:
            # What bears the stamp was there before it is asked who writes the checkpoint; so if this is still the
            # writer, no later one made it.
            if left(stamp) and stamp not in known:
                self.folders.manifests.epochs.check(manifest.epochs[-1].number)
                known.add(stamp)
            return left(stamp)

        return given_up

    def _each_once(self, manifests: Iterable[Manifest]) -> Iterator[tuple[JobOutput, Sink]]:
        done = set[tuple[JobOutput, str]]()
        for manifest in manifests:
            for output, sink in self.named_sinks(manifest):
                key = (output, json.dumps(sink.to_json(), sort_keys=True))
                if key not in done:
                    yield output, sink
                done.add(key)

    def named_sinks(self, manifest: Manifest) -> Iterator[tuple[JobOutput, Sink]]:
        """Yield the outputs of a manifest and their sinks, except functions, which no manifest can hold."""
        for output in self._outputs(manifest):
            if output.kind != RESULTS or "function" not in (manifest.queries[output.name].sink or {}):
                yield output, self._sink(output, manifest)

    def staged(self, manifest: Manifest) -> Iterator[Storage]:
        """Yield the storage in which the steps of each output of a manifest are staged."""
        yield from (self._staging(output, sink).storage for output, sink in self.named_sinks(manifest))
        for query, entry in manifest.queries.items():
            if "function" in (entry.sink or {}):
                yield self.folders.scratch(query).at(STAGING)

    def _for_each(self, manifest: Manifest, act: Callable[[JobOutput, Sink], None]) -> None:
        for output in self._outputs(manifest):
            with self._unless_dropped(output, manifest):
                act(output, self._sink(output, manifest))

    @contextmanager
    def _unless_dropped(self, output: JobOutput, manifest: Manifest) -> Iterator[None]:
        # What is done with an output may fail if it is that of a query that the next step drops.
        try:
            yield
        except MidstreamError:
            if not self._is_dropped_next(output, manifest):
                raise

    def _is_dropped_next(self, output: JobOutput, manifest: Manifest) -> bool:
        return output.kind == RESULTS and output.name in dropped_next(manifest, self.folders, self.own)

    @staticmethod
    def _outputs(manifest: Manifest) -> Iterator[JobOutput]:
        for query, entry in manifest.queries.items():
            # The answers of a part are read within the step, by the query that it is a part of: they go nowhere else.
            if not entry.part:
                yield JobOutput(RESULTS, query)
            if entry.rejects:
                yield JobOutput(REJECTED, query)
        yield from (JobOutput(kind, stream) for kind in (LATE, DEAD_LETTERS) for stream in manifest.streams)

    def _sink(self, output: JobOutput, manifest: Manifest) -> Sink:
        if output.kind == RESULTS:
            return self._results(output.name, manifest.queries[output.name].sink)
        files = FileSink(self.folders.rejected(output.kind, output.name))
        if output.kind != DEAD_LETTERS:
            return files
        named = manifest.published.dead_letter_sinks.get(output.name)
        other = self.dead_letters.get(output.name) or (named and as_sink(named, ""))
        return _Copied(files, other) if other else files

    def _staged_for(self, output: JobOutput, manifest: Manifest) -> Sink:
        value = manifest.queries[output.name].sink if output.kind == RESULTS else None
        given = self.sinks.get(output.name)
        if value is None or given is None or given.to_json() == value:
            return self._sink(output, manifest)
        if "function" not in value:
            return as_sink(value, self.folders.results(output.name))
        # Of any name: no manifest can hold a function.
        return given if isinstance(given, FunctionSink) else refusing(output.name, value)

    def _staged_at(self, output: JobOutput, manifest: Manifest) -> Staging:
        # Also for a function that is not here.
        if output.kind == RESULTS and "function" in (manifest.queries[output.name].sink or {}):
            return Staging(self.folders.scratch(output.name).at(STAGING))
        return self._staging(output, self._staged_for(output, manifest))

    def _results(self, query: str, value: Mapping[str, Any] | None) -> Sink:
        found = self.sinks.get(query) or restored(value, self.folders.results(query))
        if found is None:
            raise not_here(query, value or {})
        return found

    def _staging(self, output: JobOutput, sink: Sink) -> Staging:
        return sink.staging(self.folders.scratch(output.name))


def not_here(query: str, value: Mapping[str, Any]) -> SinkError:
    """Make the error of a query whose manifest entry names `value` as its sink."""
    return SinkError(
        f"the results of query {query!r} go to the function {value['function']}, which this program does not have",
        place=f"query {query}",
        remedy="name the function as the query's sink when you start the job",
    )


def refusing(query: str, value: Mapping[str, Any]) -> FunctionSink:
    """Make a sink that raises that error for anything that is committed."""

    def refuse(*_: object) -> None:
        raise not_here(query, value)

    return FunctionSink(refuse)


def left_by(manifest: Manifest, sink: Sink) -> Callable[[Stamp], bool]:
    """Make the test whether the manifest's job has left something, by its stamp.

    A manifest may name any sink, and only what this job has left there goes. Files without a stamp are never the job's
    own. A table may have lost whose its newest step was.
    """
    unstamped = not isinstance(sink, FileSink)
    return lambda stamp: stamp.job == manifest.job or (unstamped and not stamp.job)


def clear_former(staging: Staging, manifest: Manifest) -> None:
    """Remove what drivers of epochs before the manifest's have staged."""
    former = {epoch.token for epoch in manifest.epochs[:-1]}
    for folder in staging.storage.names():
        if folder.partition(".")[0] in former:
            staging.storage.remove_folder(folder)


def clear_later(staging: Staging, manifest: Manifest) -> None:
    """Remove what drivers of the manifest's time line have staged of later steps."""
    tokens = {epoch.token for epoch in manifest.epochs}
    for token in tokens & set(staging.storage.names()):
        for folder in staging.storage.names(token):
            if step_of(folder) > manifest.step:
                staging.storage.remove_folder(f"{token}/{folder}")


def dropped_next(manifest: Manifest, folders: Folders, own: Sequence[Command] = ()) -> frozenset[str]:
    """Find the queries of a manifest that its next step drops, even if others take their names afterwards.

    It takes the commands that the manifest holds, a job script's `own` ones, and those of the log; one that it will
    refuse drops nothing. Of a log that cannot be read nobody knows any.
    """
    try:
        logged = [command for _, command in folders.commands.after(manifest.last_command)]
    except MidstreamError:
        logged = []
    current, gone = manifest, set[str]()
    for command in (*manifest.pending, *own, *logged):
        try:
            after = taken(current, command)
        except MidstreamError:
            continue
        gone |= current.queries.keys() - after.queries.keys()
        current = after
    return frozenset(gone & manifest.queries.keys())
