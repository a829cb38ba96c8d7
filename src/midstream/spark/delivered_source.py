"""Results on an object store as a source of Spark's structured streaming, written in Python.

Spark's own file source reads no object store without a connector of Hadoop's; this one reads by what the checkpoint of
the job that wrote them is read by. An offset is the stamp of a step: so a reader goes on, whatever happened
to it, right behind the last step that counts in its own checkpoint.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from midstream.checkpoint.folders import Folders
from midstream.checkpoint.reader import Checkpoint
from midstream.model.time_line import Stamp
from midstream.pipeline.results import DeliveredResults
from midstream.sinks import FileSink
from midstream.storage.places import storage_at

FORMAT = "midstream_results"
FILES_A_STEP = "maxFilesPerTrigger"
"""The option that bounds a micro-batch, of the same name as the one of Spark's file source; no step is split."""

_PARTITIONS = 8
_BEGINNING = Stamp("", "", -1)


class ResultsDataSource(DataSource):
    """The source of the options `checkpoint`, `query` and `sink`, the URL where the results are."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the source for `readStream.format`."""
        return FORMAT

    def streamReader(self, schema: StructType) -> ResultsReader:
        """Make a reader for a streaming query; each has its own."""
        return ResultsReader(self.options, to_arrow_schema(schema, timezone="UTC"))


class Files(InputPartition):
    """What one task reads."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(names)


class ResultsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads steps in order, each whole and once."""

    def __init__(self, options: MutableMapping[str, str], columns: pa.Schema) -> None:
        self._sink, self._columns = options["sink"], columns
        self._place, self._query = options["checkpoint"], options["query"]
        self._files_a_step = int(options.get(FILES_A_STEP, 0))
        self._target: Stamp | None = None

    def initialOffset(self) -> dict[str, Any]:
        """Return the offset before the first step."""
        return asdict(_BEGINNING)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Limit a batch to as many files as the option says."""
        return ReadMaxFiles(self._files_a_step) if self._files_a_step else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the target: what is there now is all there will be."""
        self._target = self._delivered.newest() or _BEGINNING

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the last step that is delivered whole, or as many as the limit allows, though one at least."""
        since, last = Stamp(**start), self._target or self._delivered.newest() or _BEGINNING
        if last.step <= since.step:
            if last != since:
                self._delivered.files(since, since)  # It says if the job went back behind what was read.
            return start
        if isinstance(limit, ReadMaxFiles):
            last = self._within(since, last, limit.max_files)
        return asdict(last)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Spread the files of the steps over a few tasks."""
        since, last = Stamp(**start), Stamp(**end)
        if since == last:
            return []
        names = [name for _, name in self._delivered.files(_read(since), last)]
        shares = [tuple(names[share::_PARTITIONS]) for share in range(_PARTITIONS)]
        return [Files(share) for share in shares if share]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of the files, in a task."""
        storage = storage_at(self._sink)
        for name in partition.value:
            table = pq.read_table(pa.BufferReader(storage.read(name)))
            yield from table.select(self._columns.names).cast(self._columns).to_batches()

    def _within(self, since: Stamp, last: Stamp, most: int) -> Stamp:
        # At least one step is taken, however many its files.
        files = Counter(step for step, _ in self._delivered.files(_read(since), last))
        count, reached = 0, -1
        for step in sorted(files):
            if count and count + files[step] > most:
                return self._delivered.checkpoint.manifest().time_line.stamp(reached)
            count, reached = count + files[step], step
        return last

    @property
    def _delivered(self) -> DeliveredResults:
        return DeliveredResults(Checkpoint(Folders(self._place)), self._query, FileSink(self._sink))


def _read(stamp: Stamp) -> Stamp | None:
    # None where no step was read.
    return None if stamp == _BEGINNING else stamp
