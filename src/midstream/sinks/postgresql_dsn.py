"""What a sink's connection string may say: a checkpoint or a job file that anybody has written may hold one."""

from __future__ import annotations

from collections.abc import Mapping

from midstream.model.errors import SinkError
from midstream.model.extras import from_extra

SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
"""What a connection string may hold that no manifest shall."""

_SETTINGS = """service host port dbname user connect_timeout keepalives keepalives_idle keepalives_interval
keepalives_count tcp_user_timeout sslmode sslnegotiation sslcert sslkey sslcertmode sslrootcert sslcrl sslcrldir sslsni
ssl_min_protocol_version ssl_max_protocol_version min_protocol_version max_protocol_version channel_binding require_auth
requirepeer gssencmode krbsrvname target_session_attrs load_balance_hosts application_name fallback_application_name
client_encoding options"""

SETTINGS = frozenset(_SETTINGS.split())
"""The settings of libpq that a connection string may have. Not among them are those that write a file
(`sslkeylogfile`), load a library (`gsslib`), or hand a password or ticket of one server to another (`passfile`,
`hostaddr`, `gssdelegation`), nor any that a later libpq may bring.
"""


def check_dsn(dsn: str) -> Mapping[str, str]:
    """Parse a connection string; raises a `SinkError` where it holds a password, or a setting that it may not have.

    >>> check_dsn("host=db")
    {'host': 'db'}
    """
    with from_extra("postgresql", "sink", SinkError):
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict
    if not isinstance(dsn, str):
        raise _no_dsn()
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except ProgrammingError:  # Its message quotes the string, which may hold a password.
        raise _no_dsn() from None
    if any(secret in given for secret in SECRETS):
        raise holds_a_password()
    refused = sorted(given.keys() - SETTINGS)
    if refused:
        raise _refused(f"a dsn may not say {refused[0]}")
    if ":" in given.get("sslkey", ""):  # OpenSSL would load the engine, which may be any library.
        raise _refused("the sslkey of a dsn may not name an engine")
    if {"service", "host"} <= given.keys():
        raise _refused("a dsn may not send the password of a service to another host")
    return given


def check_password_goes_to(given: Mapping[str, str], environment: Mapping[str, str], place: str) -> None:
    """Raise where `PGPASSWORD` would be shown to a server that the environment that has it does not name.

    The user who set the password says by `PGHOST` and `PGPORT` which servers it is for; anybody may have written the
    rest of a connection string. Service files and `~/.pgpass` say themselves which server each password is for.

    >>> check_password_goes_to({"host": "db"}, {"PGPASSWORD": "of db", "PGHOST": "db"}, "table t")
    >>> check_password_goes_to({"host": "evil"}, {"PGPASSWORD": "of db", "PGHOST": "db"}, "t")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    midstream.model.errors.SinkError: PGPASSWORD is not sent to the host evil, which the environment does not name ...
    """
    if not environment.get("PGPASSWORD"):
        return
    for what, variable, default in (("host", "PGHOST", ""), ("port", "PGPORT", "5432")):
        named = (environment.get(variable) or default).split(",")
        for one in given.get(what, "").split(","):
            if one and one not in named:
                raise SinkError(
                    f"PGPASSWORD is not sent to the {what} {one}, which the environment does not name",
                    place=place,
                    remedy=f"if you trust it with that password, set {variable}={one} too; or use ~/.pgpass or a "
                    "service file, where a password has a server",
                )


def holds_a_password() -> SinkError:
    """Make the error for a sink whose options hold a password."""
    return SinkError(
        "a sink must not contain a password: the checkpoint would keep it",
        place="sink",
        remedy="leave it out, and set PGPASSWORD with PGHOST or use ~/.pgpass or a service file",
    )


def _no_dsn() -> SinkError:
    remedy = 'write it as in "host=db dbname=sales user=etl"'
    return SinkError("the dsn is not a connection string", place="sink", remedy=remedy)


def _refused(what: str) -> SinkError:
    return SinkError(what, place="sink", remedy="leave it out, and set it in a service file or libpq's environment")
