"""Chunks: that those which are listed are whole, and that no others are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial

from midstream.model.errors import CheckpointError, MidstreamError
from midstream.model.ids import LaneId
from midstream.model.manifest import ChunkRef, Manifest
from midstream.pipeline.doctor.finding import Finding, Patient
from midstream.state.chunk_store import file_of
from midstream.step.placement import misplaced
from midstream.storage.files import FileStore, forget_opened
from midstream.storage.sweep import files_of, is_chunk, listed, sweep, without_brought


def chunks(patient: Patient) -> Iterator[Finding]:
    """Check that every chunk that a kept manifest lists is there, and that its checksum is right."""
    store, bad = FileStore(patient.folders.chunks), dict[str, tuple[bool, CheckpointError]]()
    seen: set[str] = set()
    for manifest in patient.kept.values():
        for is_given, ref in _listed(manifest):
            if ref.name not in seen:
                seen.add(ref.name)
                forget_opened([store.storage.place(file_of(ref.name))])
                try:
                    store.get(ref)
                except CheckpointError as error:
                    bad[ref.name] = (is_given, error)
    there = {f"step {step}" for step in patient.folders.manifests.steps()}
    whole = [called for called, one in patient.kept.items() if not bad.keys() & set(listed(one))]
    for name, (is_given, fault) in bad.items():
        listing = [called for called, one in patient.kept.items() if name in set(listed(one))]
        if all(called.startswith("step") and called not in there for called in listing):
            continue  # The job has gone on, and swept it away, since the manifests were read.
        if is_given:
            way = f"go back to {whole[-1]}, the newest that is whole" if whole else "no kept step is whole"
            yield Finding("chunks", f"{fault.message}; in {', '.join(listing)}", fault.place, f"restore it, or {way}")
        else:
            remedy = "none is needed: it is computed again from base rows with the next step"
            yield Finding("chunks", f"{fault.message}; in {', '.join(listing)}", fault.place, remedy, harmless=True)


def lanes(patient: Patient) -> Iterator[Finding]:
    """Check that every kept row lies in the lane, or at the node, where later rows look for it."""
    store, wrong, whole = FileStore(patient.folders.chunks), set[tuple[LaneId, str]](), list[str]()
    before: Manifest | None = None
    for called, manifest in sorted(patient.kept.items(), key=lambda item: item[1].step):
        try:
            found = list(misplaced(manifest, store, before))
        except MidstreamError:
            continue  # A chunk is damaged, or code that the user gave the job is not here.
        listed_there = {(lane, ref.name) for lane, ref in _chunks_of_lanes(manifest)}
        before, wrong = manifest, wrong & listed_there
        rows = Counter[tuple[str, ...]]()
        for one in found:
            if (one.lane, one.chunk) not in wrong:
                wrong.add((one.lane, one.chunk))
                rows[one.queries] += one.rows
        if not wrong:
            whole.append(called)
        for queries, count in sorted(rows.items()):
            names = ", ".join(queries)
            anew = f"drop {names} and add it again"
            yield Finding(
                "lanes",
                f"since {called} {count} rows kept for {names} lie in wrong lanes: results with later rows are missing",
                f"query {names}",
                f"rewind to {whole[-1]}, the newest from before that, or {anew}" if whole else anew,
            )


def orphans(patient: Patient) -> Iterator[Finding]:
    """Find files that nobody will use; a running job has such files, and removes them in time."""
    if patient.is_held or not patient.all_read:
        return
    yield from _unlisted_chunks(patient)
    yield from _tables_being_set(patient)
    yield from _unfinished_files(patient)


def _unlisted_chunks(patient: Patient) -> Iterator[Finding]:
    kept = patient.kept.values()
    saved = {ref.name for one in kept for ref in _tables(one)}
    listing = set(map(file_of, saved)).union(*map(files_of, kept))
    store, brought = patient.folders.chunks, partial(patient.folders.brought, kept)
    loose = without_brought((name for name, _ in store.walk() if name not in listing and is_chunk(name)), brought)
    if loose and not saved:
        yield Finding(
            "orphans",
            f"{len(loose)} files that no kept manifest lists, such as {loose[0]}",
            store.url,
            "remove them; a job does so in time",
            harmless=True,
            mend=lambda: sweep(store, kept, brought),
        )


def _tables_being_set(patient: Patient) -> Iterator[Finding]:
    storage = patient.folders.storage
    for file, holder in patient.folders.commands.bringers().items():
        name = f"commands/{file}"
        yield Finding(
            "orphans",
            f"{holder or 'a process'} began to give a static table its rows, and has not ended",
            storage.place(name),
            "remove the file once the process is gone: until then what tables had before stays",
            harmless=True,
            mend=partial(storage.remove, [name]) if holder and holder.is_gone else None,
        )


def _unfinished_files(patient: Patient) -> Iterator[Finding]:
    storage = patient.folders.storage
    halves = [name for name, _ in storage.walk() if name.endswith(".tmp") and not name.startswith("spark/")]
    if halves:
        yield Finding(
            "orphans",
            f"{len(halves)} files that were never finished, such as {halves[0]}",
            storage.url,
            "remove them",
            harmless=True,
            mend=lambda: storage.remove(halves),
        )


def _listed(manifest: Manifest) -> Iterator[tuple[bool, ChunkRef]]:
    # A base row or a row of a table cannot be computed again: then the first value is True.
    yield from ((True, table.chunk) for table in manifest.tables.values())
    for lane in manifest.lane_states.values():
        for id, listing in lane.states.items():
            yield from ((id.is_base, ref) for ref in listing.chunks)


def _chunks_of_lanes(manifest: Manifest) -> Iterator[tuple[LaneId, ChunkRef]]:
    for lane, state in manifest.lane_states.items():
        yield from ((lane, ref) for listing in state.states.values() for ref in listing.chunks)


def _tables(manifest: Manifest) -> Iterator[ChunkRef]:
    # A saved engine keeps late rows and dead letters as chunks.
    for kept in (manifest.published.late, manifest.published.dead_letters):
        yield from kept.values()
