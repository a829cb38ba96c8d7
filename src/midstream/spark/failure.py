"""What a job on Spark failed by, in words."""

from __future__ import annotations

from py4j.protocol import Py4JError

from midstream.model.errors import SparkError
from midstream.model.spark_cause import spark_cause

_NO_JVM = "its JVM has ended"


def told_of(failure: BaseException, place: str) -> BaseException:
    """An exception of Spark's as a SparkError whose cause it is; any other as it is."""
    own = type(failure).__module__.startswith(("py4j.", "pyspark."))
    if not own and not isinstance(failure, ConnectionError):
        return failure
    error = SparkError(
        f"Spark has failed: {_text(failure)}",
        place=place,
        remedy="mend that and start the job again, which goes on where it stopped; Spark's log has all of it",
    )
    error.__cause__ = failure
    return error


def _text(failure: BaseException) -> str:
    """The text of an exception; one of Java's is asked of the JVM, which may have ended."""
    if isinstance(failure, ConnectionError):
        return _NO_JVM
    try:
        return spark_cause(str(failure))
    except (Py4JError, OSError):
        return _NO_JVM
