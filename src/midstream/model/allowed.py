"""What a name in a checkpoint, a command log or a job file may run: no code by itself.

A checkpoint may have been written by anybody. So an operator that it names is only created if this program has named it
too, in code or on its command line; if an installed package declares it as an entry point; or if it is an operator
whose module the program has imported already.

A job file may have been written by anybody too, and Spark makes any class that a format or an option names. So the
formats and options that a job file may use are those listed here, which read and do nothing else; all others only if
this program has named them too, in code or on its command line.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import Any

from midstream.model.errors import InputError
from midstream.model.words import suggest

ENTRY_POINTS = "midstream.user_operators"
"""The group of entry points by which a package says that its operators may be named anywhere."""

METHODS = ("feed", "snapshot", "restore")
"""What every operator has."""

_OPERATORS: set[str] = set()


def allow_operators(*names: str) -> None:
    """Allow job files, checkpoints and commands to use these operators, named as `package.module:Class`.

    >>> allow_operators("shop.operators:Median")
    >>> is_allowed("shop.operators:Median"), is_allowed("os:system")
    (True, False)
    """
    _OPERATORS.update(_texts(names, "allow_operators"))


def allowed_operators() -> frozenset[str]:
    """Return the operators that this program has allowed so far."""
    return frozenset(_OPERATORS)


def is_allowed(name: str) -> bool:
    """Return whether an operator of this name may be created; imports nothing to find out."""
    if name in _OPERATORS:
        return True
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if inspect.isclass(found) and all(callable(getattr(found, method, None)) for method in METHODS):
        return True
    return any(entry.value == name for entry in entry_points(group=ENTRY_POINTS))


_FILES = """maxFilesPerTrigger maxBytesPerTrigger maxFileAge maxCachedFiles discardCachedInputRatio latestFirst
fileNameOnly pathGlobFilter recursiveFileLookup modifiedBefore modifiedAfter ignoreCorruptFiles ignoreMissingFiles mode
locale timeZone compression columnNameOfCorruptRecord dateFormat timestampFormat timestampNTZFormat samplingRatio
encoding charset lineSep multiLine enableDateTimeParsingFallback"""

_CSV = """sep delimiter quote escape comment header inferSchema preferDate enforceSchema ignoreLeadingWhiteSpace
ignoreTrailingWhiteSpace nullValue nanValue positiveInf negativeInf maxColumns maxCharsPerColumn emptyValue
charToEscapeQuoteEscaping unescapedQuoteHandling"""

_JSON = """primitivesAsString prefersDecimal allowComments allowUnquotedFieldNames allowSingleQuotes
allowNumericLeadingZeros allowBackslashEscapingAnyCharacter allowUnquotedControlChars allowNonNumericNumbers
dropFieldIfAllNull"""

_KAFKA = """kafka.bootstrap.servers kafka.group.id kafka.security.protocol kafka.client.id kafka.fetch.min.bytes
kafka.fetch.max.bytes kafka.max.partition.fetch.bytes kafka.request.timeout.ms kafka.session.timeout.ms
kafka.isolation.level subscribe subscribePattern assign startingOffsets startingOffsetsByTimestamp startingTimestamp
startingOffsetsByTimestampStrategy failOnDataLoss kafkaConsumer.pollTimeoutMs fetchOffset.numRetries
fetchOffset.retryIntervalMs maxOffsetsPerTrigger maxBytesPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions
maxRecordsPerPartition groupIdPrefix includeHeaders"""

KNOWN: Mapping[str, frozenset[str]] = {
    format: frozenset(options.lower().split())
    for format, options in {
        "parquet": f"{_FILES} mergeSchema datetimeRebaseMode int96RebaseMode",
        "orc": f"{_FILES} mergeSchema",
        "avro": f"{_FILES} avroSchema ignoreExtension datetimeRebaseMode positionalFieldMatching",
        "csv": f"{_FILES} {_CSV}",
        "json": f"{_FILES} {_JSON}",
        "text": f"{_FILES} wholetext",
        "rate": "rowsPerSecond rampUpTime numPartitions",
        "rate-micro-batch": "rowsPerBatch numPartitions startTimestamp advanceMillisPerBatch",
        "kafka": _KAFKA,
        "midstream": f"{_FILES} query",
    }.items()
}
"""By format the options, in small letters, that any job file may give.

Not among them are those that remove files (`cleanSource`), name a class or a library (Hadoop's `fs.*.impl`, Kafka's
interceptors and login modules), or read a file or a URL besides the `path` (`avroSchemaUrl`, Kafka's key stores).
"""

_SETTINGS = """spark.app.name spark.driver.memory spark.driver.cores spark.driver.maxResultSize spark.executor.memory
    spark.executor.memoryOverhead spark.executor.cores spark.executor.instances spark.executor.heartbeatInterval
    spark.cores.max spark.task.cpus spark.task.maxFailures spark.default.parallelism spark.dynamicAllocation.enabled
    spark.dynamicAllocation.minExecutors spark.dynamicAllocation.maxExecutors spark.memory.fraction
    spark.memory.storageFraction spark.network.timeout spark.python.worker.reuse spark.ui.enabled spark.ui.port
    spark.ui.showConsoleProgress spark.sql.session.timeZone spark.sql.shuffle.partitions
    spark.sql.files.maxPartitionBytes spark.sql.streaming.minBatchesToRetain spark.sql.streaming.metricsEnabled
    spark.sql.streaming.fileSource.log.compactInterval spark.sql.streaming.fileSource.log.cleanupDelay"""

SETTINGS = frozenset(_SETTINGS.lower().split())
"""The settings of Spark's session, in small letters, that any job file may give.

Not among them are those that bring packages, jars, classes or options of the JVM, or say where data go or who may
connect: a master, addresses and ports of the driver.
"""

_SOURCES: set[str] = set()


def allow_sources(*names: str) -> None:
    """Allow job files to use a Spark format, or an option of a format.

    `"delta"` allows the format with any option. `"kafka:kafka.sasl.jaas.config"` allows one more option of a format
    that midstream already allows.

    >>> allow_sources("kafka:kafka.ssl.truststore.location")
    >>> check_source("kafka", ["subscribe", "kafka.ssl.truststore.location"], "stream A")
    >>> check_source("jdbc", ["driver"], "stream A")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    midstream.model.errors.InputError: format 'jdbc' comes from the job file, and this program does not allow it (at ...
    """
    _SOURCES.update(name.lower() for name in _texts(names, "allow_sources"))


def check_source(format: str, options: Iterable[str], place: str) -> None:
    """Raise an `InputError` where a job file names a format or an option that is not allowed."""
    name = format.lower()
    if name in _SOURCES:
        return
    if name not in KNOWN:
        raise _refused(f"format {format!r}", suggest(format, KNOWN), name, place)
    for option in options:
        if option.lower() not in KNOWN[name] and f"{name}:{option.lower()}" not in _SOURCES:
            raise _refused(f"option {option!r} of {format}", "correct its name", f"{name}:{option}", place)


def check_settings_of_spark(names: Iterable[str], place: str) -> None:
    """Raise an `InputError` where a job file gives a setting of Spark's session that is not allowed.

    >>> check_settings_of_spark(["spark.executor.memory"], "[spark]")
    """
    for setting in names:
        if setting.lower() not in SETTINGS and f"spark:{setting.lower()}" not in _SOURCES:
            raise _refused(f"setting {setting!r} of Spark", "correct its name", f"spark:{setting}", place)


def _refused(what: str, other: str, name: str, place: str) -> InputError:
    return InputError(
        f"{what} comes from the job file, and this program does not allow it",
        place=place,
        remedy=f"{other}, or if you trust it, allow it: midstream.allow_sources({name!r}) in code, or midstream run "
        f"--allow-source {name}",
    )


def _texts(names: tuple[object, ...], place: str) -> list[str]:
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise InputError(
            f"a name must be a string, not {type(wrong[0]).__name__}", place=place, remedy="give names as strings"
        )
    return [name for name in names if isinstance(name, str)]
