"""A PostgreSQL table as a sink: the rows of a step, and the note that it has them, in one transaction.

Next to the table, in the same schema, is the table `midstream_steps` with a row for each step that a query has written:
which job did it, in which epoch, and how many rows it gave. A row of results says in the column `_step_id` which row of
`midstream_steps` it belongs to, so that a job which goes back can take its rows back.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.types as pt

from midstream.model.errors import SinkError, WriteError
from midstream.model.extras import from_extra
from midstream.model.time_line import Stamp
from midstream.sinks.contract import Sink, StagedStep, anything, other_columns
from midstream.sinks.formats import json_texts

if TYPE_CHECKING:
    from psycopg import Connection, Error
    from psycopg.sql import Composed, Identifier

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
        raise _refused(f"a dsn must not contain {refused[0]}")
    if ":" in given.get("sslkey", ""):  # OpenSSL would load the engine, which may be any library.
        raise _refused("the sslkey of a dsn must not name an engine of OpenSSL")
    if {"service", "host"} <= given.keys():
        raise _refused("a dsn must not name a service and a host: this host would get the service's password")
    return given


def check_password_goes_to(given: Mapping[str, str], environment: Mapping[str, str], place: str) -> None:
    """Raise where `PGPASSWORD` would be shown to a server that the environment that has it does not name.

    The user who set the password says by `PGHOST` and `PGPORT` which servers it is for; anybody may have written the
    rest of a connection string. Service files and `~/.pgpass` say themselves which server each password is for.

    >>> check_password_goes_to({"host": "db"}, {"PGPASSWORD": "of db", "PGHOST": "db"}, "table t")
    >>> check_password_goes_to({"host": "evil"}, {"PGPASSWORD": "of db", "PGHOST": "db"}, "t")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    midstream.model.errors.SinkError: midstream does not send PGPASSWORD to the host evil, which the ...
    """
    if not environment.get("PGPASSWORD"):
        return
    for what, variable, default in (("host", "PGHOST", ""), ("port", "PGPORT", "5432")):
        named = (environment.get(variable) or default).split(",")
        for one in given.get(what, "").split(","):
            if one and one not in named:
                raise SinkError(
                    f"midstream does not send PGPASSWORD to the {what} {one}, which the environment does not name",
                    place=place,
                    remedy=f"if you trust the {what} with this password, also set {variable}={one}; or use "
                    f"~/.pgpass or a "
                    "service file, which bind a password to a server",
                )


def holds_a_password() -> SinkError:
    """Make the error for a sink whose options hold a password."""
    return SinkError(
        "a sink must not contain a password: the checkpoint would keep the password",
        place="sink",
        remedy="leave the password out; set PGPASSWORD and PGHOST, or use ~/.pgpass or a service file",
    )


def _no_dsn() -> SinkError:
    remedy = 'write it as in "host=db dbname=sales user=etl"'
    return SinkError("the dsn is not a connection string", place="sink", remedy=remedy)


def _refused(what: str) -> SinkError:
    return SinkError(what, place="sink", remedy="set the value in a service file or in libpq's environment")


ROWS_AT_ONCE = 65_536
_QUOTED = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
"""Every value is quoted and NULL is nothing, so an empty text is not a NULL."""

_TYPES = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "integer",
    pa.uint32(): "bigint",
    pa.uint64(): "numeric(20)",
    pa.float16(): "real",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.date32(): "date",
    pa.date64(): "date",
    pa.null(): "text",
}


def column_type(field: pa.Field) -> str:
    """Return the type of the column that holds a result column; nested values are held as `jsonb`."""
    kind = field.type.value_type if pt.is_dictionary(field.type) else field.type
    if kind in _TYPES:
        return _TYPES[kind]
    if pt.is_timestamp(kind):
        return "timestamptz" if kind.tz else "timestamp"
    if pt.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    for test, name in (
        (_is_text, "text"),
        (_is_binary, "bytea"),
        (pt.is_time, "time"),
        (pt.is_duration, "interval"),
        (pt.is_nested, "jsonb"),
    ):
        if test(kind):
            return name
    raise SinkError(
        f"PostgreSQL has no type for column {field.name!r} of type {kind}",
        place="sink",
        remedy="leave the column out of the query, or CAST the column",
    )


def copy_text(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows for `COPY ... FROM STDIN (FORMAT csv)`, in pieces."""
    for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
        columns = [_text(column) for column in batch.columns]
        piece = io.BytesIO()
        named = pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])
        pyarrow.csv.write_csv(named, piece, _QUOTED)
        yield piece.getvalue()


def _text(column: pa.Array) -> pa.Array:
    # Arrow must write the values as PostgreSQL reads them.
    kind = column.type
    if pt.is_dictionary(kind):
        return _text(column.dictionary_decode())
    if _is_binary(kind):
        return pa.array([None if value is None else "\\x" + value.hex() for value in column.to_pylist()], pa.string())
    if pt.is_duration(kind):
        counted = column.cast(pa.duration("us")).cast(pa.int64()).cast(pa.string())
        return pc.binary_join_element_wise(counted, "microseconds", " ")
    if pt.is_nested(kind):
        return json_texts(column)
    if kind == pa.float16():
        return column.cast(pa.float32())
    return column.cast(pa.string()) if pt.is_null(kind) else column


def _is_text(kind: pa.DataType) -> bool:
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_binary(kind: pa.DataType) -> bool:
    return kind in (pa.binary(), pa.large_binary(), pa.binary_view()) or bool(pt.is_fixed_size_binary(kind))


STEPS = "midstream_steps"
STEP_COLUMN = "_step_id"

PASSING = ("08", "28", "53", "55", "57", "58")
"""Classes of SQLSTATE that can be mended without another table or other results: connection, authorization, resources,
what is in use, an operator's intervention, the server's system. An error without a SQLSTATE is one of connection.
"""

CONNECTING: Mapping[str, int] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
"""What a connection is made with unless the connection string says otherwise: seconds, and how many are missed. So a
server that no longer answers is an error within a minute or so, and not a job that stands still for hours.
"""

_CREATE_STEPS = """
    CREATE TABLE IF NOT EXISTS {} (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        target text NOT NULL, query text NOT NULL, step bigint NOT NULL,
        job text NOT NULL, epoch text NOT NULL, rows bigint NOT NULL,
        committed_at timestamptz NOT NULL DEFAULT now(),
        UNIQUE (target, query, step))"""
_INSERT_STEP = """
    INSERT INTO {} (target, query, step, job, epoch, rows) VALUES (%s, %s, %s, %s, %s, %s)
    RETURNING id"""
_NEWEST = "SELECT job, epoch, step FROM {} WHERE target = %s AND query = %s ORDER BY step DESC LIMIT 1"
_LATER = "DELETE FROM {} WHERE target = %s AND query = %s AND step > %s RETURNING id, rows"


@dataclass(frozen=True)
class PostgresqlSink(Sink):
    """Rows appended to a table. If the table does not exist, the sink creates it.

    `dsn` is a connection string: `service=warehouse`, `host=db dbname=sales user=etl`, or a `postgresql://` URL. It
    may contain the settings in `SETTINGS`, but no password. libpq takes the password from a service file, `~/.pgpass`
    or `PGPASSWORD`. midstream allows `PGPASSWORD` only for the server in `PGHOST` and `PGPORT`. libpq's other
    environment variables give the settings that `dsn` leaves out. Without `step_column` the table has only the
    results' columns, and a job cannot go back.

    >>> PostgresqlSink("sales.pairs", "service=warehouse").to_json()
    {'type': 'postgresql', 'table': 'sales.pairs', 'dsn': 'service=warehouse', 'step_column': True}
    """

    table: str
    dsn: str = ""
    step_column: bool = True

    name: ClassVar[str] = "postgresql"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Make the sink from its options; raises `SinkError` if the options contain a password."""
        if any(secret in options for secret in SECRETS):
            raise holds_a_password()
        return super().of(options)

    def __post_init__(self) -> None:
        check_dsn(self.dsn)
        if not isinstance(self.table, str) or not all(self.table.split(".")) or self.table.count(".") > 1:
            raise SinkError(
                f"{self.table!r} is not the name of a table", place="sink", remedy='write "table" or "schema.table"'
            )

    def open(self) -> None:
        """Check that the server accepts the login, and that an existing table has the column for steps."""
        with self._transaction() as connection:
            if self._is_there(connection):
                self._check_step_column(connection)

    def check_columns(self, columns: pa.Schema) -> None:
        """Raise `SinkError` if the columns of the table do not fit the results.

        For example, the table lacks a column, has a column of another type, or needs a value that the results lack.
        """
        with self._transaction() as connection:
            if self._is_there(connection):
                given = {field.name: column_type(field) for field in columns}
                given |= {STEP_COLUMN: "bigint"} if self.step_column else {}
                if found := differing_columns(connection, self._table, given):
                    raise other_columns(found, self._place)

    def write(self, staged: StagedStep) -> None:
        """Append the rows and record the step in one transaction, unless the step is already recorded."""
        rows = staged.table()
        with self._transaction() as connection:
            self._create(connection, rows.schema)
            lock(connection, f"{STEPS} {self.table} {staged.name}")
            while (newest := self._newest(connection, staged.name)) is not None and staged.line.gave_up(newest):
                self._take_back(connection, staged.name, newest.step - 1)
            if not staged.follows(newest, self._place):
                return
            values = (self._target, staged.name, staged.step, staged.stamp.job, staged.stamp.epoch, rows.num_rows)
            noted = connection.execute(_composed(_INSERT_STEP, self._steps), values).fetchone()
            assert noted is not None
            if self.step_column:
                rows = rows.append_column(STEP_COLUMN, pa.repeat(noted[0], rows.num_rows))
            text = "COPY {} ({}) FROM STDIN (FORMAT csv)"
            with connection.cursor().copy(_composed(text, self._table, _names(rows.schema.names))) as copy:
                for piece in copy_text(rows):
                    copy.write(piece)

    def newest(self, name: str) -> Stamp | None:
        """Read the newest step from the table of steps."""
        with self._transaction() as connection:
            return self._newest(connection, name) if self._has_steps(connection) else None

    def check_forget(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Raise the error that `forget_after` would raise, but change nothing."""
        with self._transaction() as connection, connection.transaction(force_rollback=True):
            self._forget_after(connection, name, step, given_up)

    def forget_after(self, name: str, step: int, given_up: Callable[[Stamp], bool] = anything) -> None:
        """Delete the rows and the records of all steps after `step` in one transaction.

        Raises `SinkError` if the table does not show which rows the later steps wrote.
        """
        with self._transaction() as connection:
            self._forget_after(connection, name, step, given_up)

    def _forget_after(
        self, connection: Connection[Any], name: str, step: int, given_up: Callable[[Stamp], bool]
    ) -> None:
        newest = self._newest(connection, name) if self._has_steps(connection) else None
        if newest is not None and given_up(newest):
            self._take_back(connection, name, step)

    def _take_back(self, connection: Connection[Any], name: str, step: int) -> None:
        later = connection.execute(_composed(_LATER, self._steps), (self._target, name, step)).fetchall()
        if later and not self.step_column:
            raise self._cannot_take_back(step, "the rows do not say which step gave them (step_column is off)")
        if later:
            delete = _composed("DELETE FROM {} WHERE {} = ANY(%s)", self._table, _names([STEP_COLUMN]))
            found = connection.execute(delete, ([id for id, _ in later],)).rowcount
            if found > (written := sum(rows for _, rows in later)):
                raise self._cannot_take_back(step, f"{found} rows bear its later steps, which wrote {written}")

    def _newest(self, connection: Connection[Any], name: str) -> Stamp | None:
        found = connection.execute(_composed(_NEWEST, self._steps), (self._target, name)).fetchone()
        return None if found is None else Stamp(*found)

    def _create(self, connection: Connection[Any], schema: pa.Schema) -> None:
        if self._has_steps(connection) and self._is_there(connection):
            return
        # The tables are created in a transaction of their own: that of the rows may take long.
        with self._transaction() as creating:
            # Two sessions that create one table at once fail, in spite of IF NOT EXISTS.
            lock(creating, STEPS)
            creating.execute(_composed(_CREATE_STEPS, self._steps))
            columns = {field.name: column_type(field) for field in schema}
            columns |= {STEP_COLUMN: "bigint"} if self.step_column else {}
            creating.execute(_composed("CREATE TABLE IF NOT EXISTS {} ({})", self._table, _typed(columns)))

    def _is_there(self, connection: Connection[Any]) -> bool:
        return _exists(connection, self._table)

    def _has_steps(self, connection: Connection[Any]) -> bool:
        return _exists(connection, self._steps)

    def _check_step_column(self, connection: Connection[Any]) -> None:
        described = connection.execute(_composed("SELECT * FROM {} LIMIT 0", self._table)).description or ()
        if self.step_column and STEP_COLUMN not in [column.name for column in described]:
            raise SinkError(
                f"the table has no column {STEP_COLUMN}",
                place=self._place,
                remedy=f"ALTER TABLE {self.table} ADD COLUMN {STEP_COLUMN} bigint; or, if the job will never go back, "
                "give the sink step_column = false",
            )

    def _cannot_take_back(self, step: int, why: str) -> SinkError:
        return SinkError(
            f"the rows of steps after {step} cannot be taken back: {why}",
            place=self._place,
            remedy=f"restore the table and {STEPS} as they were after step {step}, or continue from the newest step",
        )

    @property
    def _place(self) -> str:
        return f"table {self.table}"

    @property
    def _target(self) -> str:
        return self.table.rpartition(".")[2]

    @property
    def _table(self) -> Identifier:
        from psycopg.sql import Identifier

        return Identifier(*self.table.split("."))

    @property
    def _steps(self) -> Identifier:
        from psycopg.sql import Identifier

        return Identifier(*self.table.split(".")[:-1], STEPS)

    @contextmanager
    def _transaction(self) -> Iterator[Connection[Any]]:
        # The transaction is committed at the end of the block, or rolled back where that fails.
        import psycopg

        dsn = check_dsn(self.dsn)
        check_password_goes_to(dsn, os.environ, self._place)
        made: dict[str, Any] = {"client_encoding": "UTF8", "application_name": "midstream", **_connecting(dsn)}
        try:
            with psycopg.connect(self.dsn, **made) as connection:
                connection.execute("SET LOCAL TimeZone = 'UTC'")
                yield connection
        except psycopg.Error as error:
            raise _failed(error, self._place) from error


def _connecting(dsn: Mapping[str, str]) -> dict[str, int]:
    # Neither the connection string nor the environment sets these.
    given = {*dsn, *(["connect_timeout"] if "PGCONNECT_TIMEOUT" in os.environ else [])}
    return {name: value for name, value in CONNECTING.items() if name not in given}


def _composed(text: str, *parts: Identifier | Composed) -> Composed:
    from psycopg.sql import SQL

    return SQL(text).format(*parts)


def _names(names: list[str]) -> Composed:
    from psycopg.sql import SQL, Identifier

    return SQL(", ").join(map(Identifier, names))


def _typed(columns: Mapping[str, str]) -> Composed:
    from psycopg.sql import SQL, Identifier

    return SQL(", ").join(SQL("{} ").format(Identifier(name)) + SQL(kind) for name, kind in columns.items())


def _exists(connection: Connection[Any], table: Identifier) -> bool:
    found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", (table.as_string(connection),)).fetchone()
    return found is not None and bool(found[0])


def _failed(error: Error, place: str) -> SinkError:
    # By the class of the error, the first two characters of its SQLSTATE.
    remedies = {
        "22": "see that the table's columns have the types of the results, or name another table",
        "23": "see that the table's constraints allow the results, or name another table",
        "28": "set PGPASSWORD with PGHOST and PGPORT, or use ~/.pgpass or a service file",
        "42": "alter the table so that it has the results' columns and this user may write it, or name another table",
        "53": "give the server more room, then start again",
        "55": "see in pg_locks and pg_stat_activity whose session holds the lock, and end it",
    }
    remedy = remedies.get(
        (error.sqlstate or "")[:2], "see that the server runs and lets this user in, then start again"
    )
    passing = (error.sqlstate or "08")[:2] in PASSING
    said = " ".join(str(error).split()) or type(error).__name__
    kind = WriteError if passing else SinkError
    return kind(f"PostgreSQL: {said}", place=place, remedy=remedy)


_COLUMNS = """
    SELECT attname, format_type(atttypid, atttypmod), typname, typcategory,
        attnotnull AND NOT atthasdef AND attidentity = ''
    FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
    WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""

TEXTS = "S"
"""The category of types (PostgreSQL documentation, `pg_type.typcategory`) that take any text."""

OF_VALUES = "BNDT"
"""Those of booleans, numbers, dates and spans of time, which take nothing of another one."""

WHOLE = ("int2", "int4", "int8")

_CATEGORIES = {
    "boolean": "B",
    "smallint": "N",
    "integer": "N",
    "bigint": "N",
    "numeric": "N",
    "real": "N",
    "double precision": "N",
    "date": "D",
    "time": "D",
    "timestamp": "D",
    "timestamptz": "D",
    "interval": "T",
}


def differing_columns(connection: Connection[Any], table: Identifier, results: Mapping[str, str]) -> list[str]:
    """List what differs between the columns of a table and those of results, by name and the type created for them.

    A column of the table that is not of the results does not differ where it may be NULL or has a default. Whether a
    text is one of an enumeration, or a number is in range, only values show.
    """
    rows = connection.execute(_COLUMNS, (table.as_string(connection),)).fetchall()
    has = {name: (shown, kind, category) for name, shown, kind, category, _ in rows}
    found = [f"{name} is missing" for name in results if name not in has]
    for name, given in results.items():
        if name in has and not _takes(*has[name][1:], given):
            found.append(f"{name} is {has[name][0]} and should be {given}")
    wanted = [name for name, *_, is_wanted in rows if is_wanted and name not in results]
    return [*found, *(f"{name} must not be NULL and is not of the results" for name in wanted)]


def _takes(kind: str, category: str, given: str) -> bool:
    # `given` is the type that a column for the results would be created with.
    name = given.partition("(")[0]
    other = _CATEGORIES.get(name)
    if category == TEXTS or (other is None and category not in OF_VALUES):
        return True
    fractions = name in ("real", "double precision") or (name == "numeric" and not given.endswith(("(20)", ", 0)")))
    return category == other and not (kind in WHOLE and fractions)


PATIENCE = 10
"""Seconds after which the session that holds a lock is ended."""

_WAIT = "SELECT set_config('lock_timeout', %s, true)"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext(%s))"
_WAIT_AS_BEFORE = "SET LOCAL lock_timeout TO DEFAULT"
_END_ITS_HOLDER = """
    SELECT pg_terminate_backend(held.pid)
    FROM pg_locks AS held JOIN pg_stat_activity AS session USING (pid)
    WHERE held.locktype = 'advisory' AND held.granted AND held.objsubid = 1
        AND held.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND ((held.classid::bigint << 32) | held.objid::bigint) = hashtext(%s)::bigint
        AND session.usename = current_user AND held.pid <> pg_backend_pid()"""


def lock(connection: Connection[Any], name: str) -> None:
    """Hold the lock of this name until the transaction ends.

    A session of this user's that holds it for longer than `PATIENCE` is ended and its transaction rolled back: a
    program that was suspended in one would hold it forever, even if another has gone on with its job meanwhile. What
    is rolled back is done again by the writer of the job's checkpoint. Raises psycopg's `LockNotAvailable` where
    another user's session does not let go.
    """
    from psycopg.errors import LockNotAvailable

    try:
        _take(connection, name)
    except LockNotAvailable:
        connection.execute(_END_ITS_HOLDER, (name,))
        _take(connection, name)


def _take(connection: Connection[Any], name: str) -> None:
    with connection.transaction():  # A savepoint: what waited in vain leaves the transaction as it was.
        connection.execute(_WAIT, (f"{PATIENCE}s",))
        connection.execute(_LOCK, (name,))
        connection.execute(_WAIT_AS_BEFORE)
