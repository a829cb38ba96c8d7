"""What an exception of Spark says, without the frames, the names of classes and the numbers of calls. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from midstream.model.errors import InputError, MidstreamError

_CODE = r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s+"
_CODED = re.compile(rf"{_CODE}((?:(?!{_CODE.replace('(', '(?:', 1)})[^\n])+)")
_CAUSED = re.compile(r"^Caused by: ([^\n]+)", re.MULTILINE)
_CLASS = re.compile(r"^(?:[a-z_][\w$]*\.)+([A-Z][\w$]*)(?:: |$)")
_CALL = re.compile(r"^An error occurred while calling [^\n]*\n: ([^\n]+)")
_PYTHON = re.compile(r"^[A-Za-z_][\w.]*(?:Error|Exception): .+", re.MULTILINE)
_STATE = re.compile(r"(?:\s*SQLSTATE: \w+)+\s*$")

GENERAL = ("STREAM_FAILED", "INTERNAL_ERROR")
"""Codes that only say that something failed."""

LONGEST = 600


def spark_cause(text: str) -> str:
    r"""Extract the most telling part of a Spark exception's text: its own sentence, and the underlying cause.

    >>> text = '''An error occurred while calling o55.collectToPython.
    ... : org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Cannot read file:///a.parquet.  SQLSTATE: KD001
    ... \tat org.apache.spark.Some.frame(Some.scala:1)
    ... Caused by: java.lang.RuntimeException: file:/a.parquet is not a Parquet file'''
    >>> spark_cause(text)
    'Cannot read file:///a.parquet: file:/a.parquet is not a Parquet file'
    >>> spark_cause("An error occurred while calling o4.load.\n: java.lang.NoClassDefFoundError: com.x.Y\n\tat a.b(c)")
    'NoClassDefFoundError: com.x.Y'
    """
    coded = next((found[2] for found in _CODED.finditer(text) if found[1].split(".")[0] not in GENERAL), "")
    if "Traceback (most recent call last)" in text and (raised := _PYTHON.findall(text)):
        return str(raised[-1]).strip()[:LONGEST]
    own = _STATE.sub("", coded).strip().rstrip(".")
    causes = _CAUSED.findall(text) or _CALL.findall(text)
    root = _sentence(causes[-1], short=bool(own)) if causes else ""
    said = f"{own}: {root}" if own and root and root not in own else own or root
    return (said or next((line.strip() for line in text.splitlines() if line.strip()), ""))[:LONGEST]


def stream_error(name: str, error: Exception, remedy: str) -> InputError:
    """Translate an exception that Spark raised when it opened a stream of a job file.

    >>> stream_error("A", ValueError("no such folder"), "correct its path")
    InputError("Spark cannot read stream 'A': no such folder (at [streams.A]). Remedy: correct its path")
    """
    cause = spark_cause(str(error)) or type(error).__name__
    return InputError(f"Spark cannot read stream {name!r}: {cause}", place=f"[streams.{name}]", remedy=remedy)


def own_error(text: str, kinds: Iterable[type[MidstreamError]]) -> MidstreamError | None:
    """Read the error of one of these kinds that a Python process of Spark ended by; None if it was anything else.

    >>> from midstream.model.errors import ReadError
    >>> own_error("Traceback\\nmidstream.model.errors.ReadError: no answer (at here). Remedy: wait", [ReadError])
    ReadError('no answer (at here). Remedy: wait')
    """
    by_name = {kind.__name__: kind for kind in kinds}
    found = re.findall(rf"\bmidstream\.[\w.]*\b({'|'.join(by_name)}): (.+) \(at (.+?)\)\. Remedy: (.+)", text)
    if not found:
        return None
    name, message, place, remedy = found[-1]
    return by_name[name](message, place=place, remedy=remedy.strip())


def _sentence(line: str, *, short: bool) -> str:
    # The class's own name comes before the message unless that is to be `short`.
    found = _CLASS.match(line)
    if found is None:
        return line.strip()
    message = _STATE.sub("", _CODED.sub(r"\2", line[found.end() :])).strip().rstrip(".")
    return message if short and message else f"{found[1]}: {message}" if message else found[1]
