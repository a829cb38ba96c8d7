"""A job file run by an embedded engine: what is new in its folders, step by step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self

from midstream.checkpoint.folders import Folders
from midstream.embedded.engine import Engine
from midstream.embedded.folder_source import table_rows
from midstream.embedded.sources import source_of
from midstream.expr.duration import parse_duration
from midstream.pipeline.calibration_file import with_unit_costs
from midstream.pipeline.patience import PATIENCE, Patience
from midstream.pipeline.reconcile import refuse_other_streams
from midstream.proposals.settings import declared_optimizer
from midstream.sql.job_file import JobFile
from midstream.storage.places import located

_GRAIN = 0.05
"""How often, in seconds, somebody who waits looks whether he shall stop."""


class FileJob:
    """The job of a job file, in this process: its streams are files, its queries run in an `Engine`.

    Raises a `MidstreamError` for what only Spark can do.
    """

    def __init__(self, file: JobFile, *, take_over: bool = False, threads: int | None = None) -> None:
        folders = Folders(located(file.checkpoint))
        newest = folders.manifests.latest()
        known = {} if newest is None else {name: stream.columns for name, stream in newest.pushed_streams.items()}
        if known:
            refuse_other_streams(known, file.streams, folders.root)
        self._sources = {name: source_of(name, spec, known.get(name)) for name, spec in file.streams.items()}
        self._stepped = False
        self._interval: float | None = None
        self._patience = PATIENCE if file.patience is None else parse_duration(file.patience)
        self.engine = Engine(
            sharing=file.sharing,
            lanes=file.lanes if file.workers is None or "lanes" in file.places else None,
            checkpoint=file.checkpoint,
            take_over=take_over,
            threads=threads,
            memory=file.memory,
            workers=file.workers,
        )
        try:
            self._declare(file)
        except BaseException as error:
            self.engine.close(error)
            raise

    def step(self) -> bool:
        """Do a step if there are new files or commands for it, and return whether there were."""
        return self.engine.pull(interval=self._interval, returns=False) is not None

    def run(self, interval: float | None, stopping: Callable[[], bool], told: Callable[[Patience], None]) -> None:
        """Do steps until there is nothing more to do.

        With an `interval` in seconds, until it is `stopping`, or until `midstream stop` asks for it. A step that fails
        for a reason outside is repeated as long as `patience` allows. `told` is called now and then.
        """
        patience, self._interval = Patience(self._patience, stopping), interval or None
        while not stopping():
            begun = time.monotonic()
            patience.do(self.engine.manifest.step + 1, self._step)
            told(patience)
            if self.engine.stop_requested or (interval is None and not self._stepped):
                return
            while interval is not None and time.monotonic() < begun + interval and not stopping():
                time.sleep(min(_GRAIN, interval))

    def _step(self) -> None:
        self._stepped = self.step()

    def close(self, failure: BaseException | None = None) -> None:
        """Release the checkpoint, which notes a `failure`, and close the sources."""
        self.engine.close(failure)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, failure: BaseException | None, *_: object) -> None:
        self.close(failure)

    def _declare(self, file: JobFile) -> None:
        for name, spec in file.streams.items():
            source = self._sources[name]
            self.engine.declare_source(
                name,
                source,
                spec.timestamp,
                spec.lateness,
                spec.idle_timeout,
                spec.unit,
                spec.max_ahead,
                spec.dead_letters,
            )
        for name, table in file.tables.items():
            self.engine.table(name, table_rows(name, table))
        declared = self.engine.manifest.published.declared.queries
        shown = self.engine.report()
        for name in declared.keys() - file.queries.keys():
            if name in shown.queries or name in shown.refused:
                self.engine.drop_query(name)
        for query in file.queries.values():
            self.engine.declare_query(query)
        self.engine.declare_optimizer(declared_optimizer(with_unit_costs(file)))
