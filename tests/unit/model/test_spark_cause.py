"""Exceptions of Spark as they came, and what is told of them."""

from __future__ import annotations

import pytest

from midstream.model.spark_cause import LONGEST, spark_cause

STAGE = """An error occurred while calling o557.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 4.0 failed 1 times, most recent \
failure: Lost task 1.0 in stage 4.0 (TID 9) (host executor driver): org.apache.spark.api.python.PythonException: \
Traceback (most recent call last):
  File "/usr/lib/worker.py", line 1, in main
    raise ValueError("the column is gone")
ValueError: the column is gone

\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)
Driver stacktrace:
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STAGE, "ValueError: the column is gone"),
        (
            "An error occurred while calling o47.load.\n: org.apache.spark.SparkClassNotFoundException: "
            "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: cvs. Make sure the provider name is correct. "
            "SQLSTATE: 42K02\n\tat a.b(c.scala:1)\nCaused by: java.lang.ClassNotFoundException: cvs.DefaultSource\n",
            "Failed to find the data source: cvs. Make sure the provider name is correct: cvs.DefaultSource",
        ),
        (
            "[STREAM_FAILED] Query [id = 1] terminated with exception: [PATH_NOT_FOUND] Path does not exist: file:/in. "
            "SQLSTATE: 42K03 SQLSTATE: XXKST",
            "Path does not exist: file:/in",
        ),
        ("An error occurred while calling o1.x. Trace:\npy4j.Py4JException: gone", "An error occurred"),
        ("", ""),
        ("x" * 10_000, "x" * LONGEST),
    ],
)
def test_what_is_told(text: str, said: str) -> None:
    assert spark_cause(text).startswith(said)
    assert "\n" not in spark_cause(text) and len(spark_cause(text)) <= LONGEST
