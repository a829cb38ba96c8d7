"""Rows that came late or could not be read: that the files with them can be read."""

from __future__ import annotations

from collections.abc import Iterator

from midstream.job.doctor.finding import Finding, Patient
from midstream.job.outputs import DEAD_LETTERS, LATE, REJECTED
from midstream.model.errors import MidstreamError
from midstream.sinks.parquet_file import parquet_rows


def rejected(patient: Patient) -> Iterator[Finding]:
    """Every file of late rows and dead letters can be read."""
    storage = patient.folders.storage
    for kind in (LATE, DEAD_LETTERS, REJECTED):
        for name in sorted(name for name, _ in storage.walk(kind) if name.endswith(".parquet")):
            try:
                parquet_rows(storage.read(name), storage.place(name))
            except FileNotFoundError:
                continue  # The job has gone back to an earlier step meanwhile.
            except MidstreamError as error:
                yield Finding("rejected", error.message, error.place, error.remedy)
