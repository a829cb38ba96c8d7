"""Rows that came late or could not be read: that the files with them can be read."""

from __future__ import annotations

from collections.abc import Iterator

from midstream.checkpoint.folders import DEAD_LETTERS, LATE, REJECTED
from midstream.job.doctor.finding import Finding, Patient
from midstream.model.errors import MidstreamError
from midstream.sinks import FileSink
from midstream.sinks.contract import anything
from midstream.sinks.parquet_file import parquet_rows
from midstream.state.store.places import storage_at


def rejected(patient: Patient) -> Iterator[Finding]:
    """Check that every file of late rows and dead letters can be read."""
    if patient.newest is None:
        return
    steps = range(patient.newest.step + 1)
    for kind in (LATE, DEAD_LETTERS, REJECTED):
        for folder in sorted(patient.folders.storage.names(kind)):
            place = f"{patient.folders.root}/{kind}/{folder}"
            storage = storage_at(place)
            for _, name in FileSink(place).files(steps, anything):
                try:
                    parquet_rows(storage.read(name), storage.place(name))
                except FileNotFoundError:
                    continue  # The job has gone back to an earlier step meanwhile.
                except MidstreamError as error:
                    yield Finding("rejected", error.message, error.place, error.remedy)
