"""What a job on Spark failed by, in words."""

from __future__ import annotations

from py4j.protocol import Py4JError, Py4JNetworkError

from midstream.model.errors import SparkError
from midstream.model.spark_cause import spark_cause

_NO_JVM = "its Java process has ended, or was killed"
_NO_JVM_REMEDY = (
    "see Spark's log, and whether the machine ran out of memory (then give Spark less, by spark.driver.memory, or the "
    "machine more); start the job again, which goes on where it stopped"
)
_REMEDY = "mend that and start the job again, which goes on where it stopped; Spark's log has all of it"


def told_of(failure: BaseException, place: str) -> BaseException:
    """Translate an exception of Spark's into a `SparkError` with it as cause; return any other as it is."""
    own = type(failure).__module__.startswith(("py4j.", "pyspark."))
    if not own and not isinstance(failure, ConnectionError):
        return failure
    text = _text(failure)
    remedy = _NO_JVM_REMEDY if text == _NO_JVM else _REMEDY
    error = SparkError(f"Spark has failed: {text}", place=place, remedy=remedy)
    error.__cause__ = failure
    return error


def _text(failure: BaseException) -> str:
    # The text of an exception of Java's is asked of the JVM, which may have ended.
    if isinstance(failure, ConnectionError | Py4JNetworkError):
        return _NO_JVM
    try:
        return spark_cause(str(failure))
    except (Py4JError, OSError):
        return _NO_JVM
