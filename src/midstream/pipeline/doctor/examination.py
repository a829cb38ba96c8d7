"""All checks of a checkpoint, made one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.pipeline.doctor.chunks import chunks, lanes, orphans
from midstream.pipeline.doctor.finding import Finding, Patient
from midstream.pipeline.doctor.logs import claims, commands, events, files, manifests, sources, spark, tidying
from midstream.pipeline.doctor.sink_checks import rejected, sinks, staged
from midstream.storage.places import Place

Check = Callable[[Patient], Iterator[Finding]]
"""Looks for one kind of damage; its name is what its findings are reported under."""

CHECKS: tuple[Check, ...] = (
    manifests,
    chunks,
    lanes,
    orphans,
    commands,
    events,
    sources,
    files,
    claims,
    sinks,
    rejected,
    staged,
    spark,
    tidying,
)
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


def examine(place: Place, *, repair: bool = False, begins: Callable[[str], None] = lambda check: None) -> Examined:
    """Read everything of a checkpoint; with `repair`, mend what can be mended without losing anything.

    `begins` is called with the name of each check before it is made. To look never disturbs a job that runs; to repair
    raises `HeldCheckpointError` where one may.
    """
    url = Checkpoint.open(place).url
    if not repair:
        return Examined(tuple(_found(Patient(Folders(url)), begins)))
    epochs = Folders(url).manifests.epochs
    claim = epochs.claim()
    try:
        findings = tuple(_found(Patient(Folders(url), claim.token), begins))
        mended = tuple(one for one in findings if one.mend is not None)
        for one in mended:
            if one.mend is not None:
                one.mend()
        return Examined(findings, mended)
    finally:
        epochs.release(claim)


def _found(patient: Patient, begins: Callable[[str], None]) -> Iterator[Finding]:
    for check in CHECKS:
        begins(getattr(check, "__name__", ""))
        yield from check(patient)
