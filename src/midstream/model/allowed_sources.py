"""Which of Spark's sources a job file may name: a class, a driver or a library that it names is not loaded by that.

A job file may have been written by anybody, and Spark makes whatever class a format or an option names. So the formats
and the options that a job file may use are those listed here, which read and do nothing else; all others only if this
program has named them too, in code or on its command line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from midstream.model.errors import InputError
from midstream.model.words import suggest

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
fetchOffset.retryIntervalMs maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions
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

_ALLOWED: set[str] = set()


def allow_sources(*names: str) -> None:
    """Let job files name formats of Spark with any option (`"delta"`), or one option more of a format
    (`"kafka:kafka.sasl.jaas.config"`).

    >>> allow_sources("kafka:kafka.ssl.truststore.location")
    >>> check_source("kafka", ["subscribe", "kafka.ssl.truststore.location"], "stream A")
    >>> check_source("jdbc", ["driver"], "stream A")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    midstream.model.errors.InputError: format 'jdbc' is named by the job file alone, not by this program (at ...
    """
    _ALLOWED.update(name.lower() for name in names)


def check_source(format: str, options: Iterable[str], place: str) -> None:
    """Raise an `InputError` where a job file names a format or an option that is not allowed."""
    name = format.lower()
    if name in _ALLOWED:
        return
    if name not in KNOWN:
        raise _refused(f"format {format!r}", suggest(format, KNOWN), name, place)
    for option in options:
        if option.lower() not in KNOWN[name] and f"{name}:{option.lower()}" not in _ALLOWED:
            raise _refused(f"option {option!r} of {format}", "correct its name", f"{name}:{option}", place)


def check_settings_of_spark(names: Iterable[str], place: str) -> None:
    """Raise an `InputError` where a job file gives a setting of Spark's session that is not allowed.

    >>> check_settings_of_spark(["spark.executor.memory"], "[spark]")
    """
    for setting in names:
        if setting.lower() not in SETTINGS and f"spark:{setting.lower()}" not in _ALLOWED:
            raise _refused(f"setting {setting!r} of Spark", "correct its name", f"spark:{setting}", place)


def _refused(what: str, other: str, name: str, place: str) -> InputError:
    return InputError(
        f"{what} is named by the job file alone, not by this program",
        place=place,
        remedy=f"{other}, or if you trust it, allow it: midstream.allow_sources({name!r}) in code, or midstream run "
        f"--allow-source {name}",
    )
