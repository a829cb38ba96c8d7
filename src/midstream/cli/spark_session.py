"""A Spark session for a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from midstream.cli.exit_codes import Failed, essence
from midstream.model.extras import from_extra


@contextmanager
def spark_session(
    name: str, cores: int | str, log: Path, settings: Mapping[str, str] | None = None, otherwise: str = ""
) -> Iterator[Any]:
    """Start a local Spark session with additional `settings`, and stop it at the end of the `with` block.

    The file `log` gets everything that Spark, its workers and its Python libraries write to stderr. An error in the
    `with` block that is not a `MidstreamError` becomes a `SparkError`. If Spark is not installed, `otherwise` is a
    second remedy in the message.
    """
    from midstream.storage.disk import Writing

    with from_extra("spark", "Spark", otherwise=otherwise):
        from midstream.spark.session import as_spark_error, end, local_session

    with Writing(str(log)):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    try:
        with _stderr_to(log):
            session = local_session(name, cores, settings)
    except Exception as error:  # For any failure to start, the message says where to look.
        raise Failed(
            f"Spark does not start: {essence(error)}",
            place=str(log),
            remedy="read this log; Spark needs Java 17 or newer",
        ) from error
    # What py4j logs when the JVM is gone goes on to be logged after the session has ended: the file stays open.
    with redirect_stderr(log.open("a", buffering=1)):
        try:
            yield session
        except Exception as error:
            if (translated := as_spark_error(error, str(log))) is not error:
                raise translated from error
            raise
        finally:
            end(session)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    # Processes started meanwhile write their stderr to the file for all their life.
    sys.stderr.flush()
    own = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)
