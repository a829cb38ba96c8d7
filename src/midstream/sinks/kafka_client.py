"""What the source and the sink of Kafka share: the client's settings, none of which is a secret of a job file, its
package, and its errors as those of midstream.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from midstream.model.errors import InputError, MidstreamError, ReadError, SinkError, WriteError
from midstream.model.extras import install

PREFIX = "MIDSTREAM_KAFKA_"
"""Variables of the environment that begin so are settings of the client: `MIDSTREAM_KAFKA_SASL_PASSWORD` is
`sasl.password`. `MIDSTREAM_KAFKA_CONFIG` names a file of them, with a line `name=value` for each.
"""

SERVERS = "bootstrap.servers"
ANSWER = 10.0
"""Seconds in which a broker must answer a question; then the step is tried again."""

_SECRETS = ("sasl.", "ssl.key", "ssl.certificate", "ssl.keystore")
_REMEDIES = {
    "AUTHORIZATION": "give this user the right on the topic, the group and the transactional id, then start again",
    "AUTHENTICATION": "see the sasl and ssl settings in the environment or in the file MIDSTREAM_KAFKA_CONFIG",
    "MSG_SIZE_TOO_LARGE": "raise max.message.bytes of the topic, and message.max.bytes in MIDSTREAM_KAFKA_CONFIG",
    "MESSAGE_TOO_LARGE": "raise max.message.bytes of the topic, and message.max.bytes in MIDSTREAM_KAFKA_CONFIG",
    "UNKNOWN_TOPIC": "make the topic, or correct its name",
    "UNKNOWN_PARTITION": "make the topic, or correct its name",
}


def kafka() -> ModuleType:
    """The package of Kafka's client; an `InputError` says how to get it."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ImportError as error:
        raise InputError(
            "the package confluent-kafka is not installed", place="Kafka", remedy=install("kafka")
        ) from error
    return confluent_kafka


def client_settings(given: Mapping[str, str], place: str) -> dict[str, Any]:
    """The settings of a client: `given` are those of the job, all others come from the environment.

    Where the environment has a login, it says as well which servers get it: a job file may have been written by
    anybody.
    """
    own = _of_environment(place)
    servers, login = own.get(SERVERS), any(name.startswith(_SECRETS) for name in own)
    if login and (servers is None or given.get(SERVERS, servers) != servers):
        raise InputError(
            f"the environment has a login for Kafka, but not for the servers {given.get(SERVERS)!r}",
            place=place,
            remedy=f"set {PREFIX}BOOTSTRAP_SERVERS to the servers that may get the login",
        )
    found: dict[str, Any] = {**own, **given}
    if not found.get(SERVERS):
        raise InputError(
            "no setting says where Kafka is", place=place, remedy="give kafka.bootstrap.servers, such as broker:9092"
        )
    return {**found, "logger": logging.getLogger("midstream.kafka")}


def _of_environment(place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    if path := os.environ.get(f"{PREFIX}CONFIG"):
        try:
            with open(path, encoding="utf-8") as file:
                lines = [line.strip() for line in file]
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"the file of Kafka's settings cannot be read: {error}", place=place, remedy=f"correct {PREFIX}CONFIG"
            ) from error
        pairs = (line.partition("=") for line in lines if line and line[0] not in "#;")
        found |= {name.strip(): value.strip() for name, _, value in pairs}
    own = {name.removeprefix(PREFIX): value for name, value in os.environ.items() if name.startswith(PREFIX)}
    return found | {name.lower().replace("_", "."): value for name, value in own.items() if name != "CONFIG"}


@contextmanager
def failures(place: str, kind: type[MidstreamError]) -> Iterator[None]:
    """Turn what the client raises into an error of `kind` or, if it may pass, a `ReadError` or a `WriteError`."""
    try:
        yield
    except kafka().KafkaException as error:
        raise failed(error.args[0], place, kind) from error
    except SystemError as error:  # The client raises a fatal error, and then calls back all the same.
        if not isinstance(error.__cause__, kafka().KafkaException):
            raise
        raise failed(error.__cause__.args[0], place, kind) from error
    except ValueError as error:  # What the client says of values that it never sends.
        raise kind(f"Kafka: {error}", place=place, remedy="correct the settings of the client") from error


def failed(error: Any, place: str, kind: type[MidstreamError]) -> MidstreamError:
    """The error of midstream for one of the client; what a sink is refused can be mended from outside."""
    name = str(error.name())
    said = re.sub(r"\s+", " ", str(error.str()))
    kind = WriteError if issubclass(kind, SinkError) else kind
    if "FENCED" in name or "INVALID_PRODUCER_EPOCH" in name:
        return kind(
            f"Kafka: another driver of this job has taken its transactions over ({said})",
            place=place,
            remedy="let the other driver go on; or stop it, and start this job again",
        )
    for part, remedy in _REMEDIES.items():
        if part in name:
            return kind(f"Kafka: {said}", place=place, remedy=remedy)
    passing = kind if kind is WriteError else ReadError
    return passing(f"Kafka: {said} ({name})", place=place, remedy="check that the broker runs, and can be reached")
