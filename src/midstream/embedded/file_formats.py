"""Files of rows as Arrow tables: Parquet and ORC as they are, CSV and JSON lines as texts, read later as declared.

Columns are found by their names, in whatever case these are written; those of a CSV file without a header by their
position. What a Parquet or ORC file, a line of JSON or a short line of CSV lacks is NULL; times are in microseconds.
A line that is not a JSON object becomes a row without values, so a dead letter, with the line in `_corrupt_record`.
CSV and JSON files that end in .gz, .bz2 or .zst are decompressed.
"""

from __future__ import annotations

import csv
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.orc
import pyarrow.parquet
import pyarrow.types as pt

from midstream.admission.given import DEEPEST, judged, with_reasons
from midstream.admission.refused_rows import CORRUPT, FILE, NO_OBJECT, UNREAD
from midstream.model.columns_of_files import AlikeColumns, own_names, refuse_alike, respelled, spelled
from midstream.model.errors import InputError

Options = Mapping[str, str]
_Bytes = npt.NDArray[np.uint8]
_Places = npt.NDArray[np.int64]

_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
_MOST_OF_HEADER = 1 << 20
_MOST_OF_BLOCK = (1 << 31) - 1
_END_OF_LINE = re.compile(rb"\r\n|\n|\r")
NO_OBJECT_OF_MESSAGE = "the value is not a JSON object"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# That of UTF-32 begins as one of UTF-16 does.
_OTHER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_TOO_DEEP = f"the JSON object is nested more than {DEEPEST} levels deep"
_TEXT_OF_JSON = re.compile(rb'"(?:[^"\\]|\\.)*"')


class BadFile(InputError):
    """A file that is none of its format, or lacks a column that it must have."""


def file_columns(data: pa.Buffer, place: str, format: str, options: Options) -> pa.Schema:
    """Find the columns of a file: the types of texts are what all values look like.

    Those of a CSV file are found by its header. An empty CSV or JSON file has no columns.
    """
    with _named(place):
        data = _decompressed(data, place, format)
        if format == "parquet":
            return _apart(pyarrow.parquet.read_schema(pa.BufferReader(data)).remove_metadata())
        if format == "orc":
            return _apart(_declarable(pyarrow.orc.ORCFile(pa.BufferReader(data)).schema))
        if not bytes(data).strip():
            return pa.schema([])
        if format == "csv":
            parse = pyarrow.csv.ParseOptions(
                delimiter=_delimiter(options), newlines_in_values=options.get("multiline", "false").lower() == "true"
            )
            read = partial(pyarrow.csv.read_csv, parse_options=parse)
            rows = _in_blocks(data, lambda size: read(pa.BufferReader(data), pyarrow.csv.ReadOptions(block_size=size)))
            if hint := _other_separator(rows.column_names):
                raise _NotReadable(f"its header has only the column {rows.column_names[0]!r}{hint}")
            return _declarable(_with_times(rows, options))
        options_of = pyarrow.json.ReadOptions
        rows = _in_blocks(data, lambda size: pyarrow.json.read_json(pa.BufferReader(data), options_of(block_size=size)))
        return _apart(_declarable(rows.schema))


def file_rows(data: pa.Buffer, place: str, format: str, columns: pa.Schema, options: Options) -> pa.Table:
    """Read the rows of a file in the declared columns; errors name `place`."""
    with _named(place):
        return READERS[format](_decompressed(data, place, format), columns, options)


def of_file(rows: pa.Table, place: str) -> pa.Table:
    """Add the file to its rows, for their dead letters to name."""
    if FILE in rows.column_names:
        return rows
    # A name that is not UTF-8 is readable so; the bytes of the name have no place in a text of Arrow.
    name = place.encode("utf-8", "backslashreplace").decode()
    # One byte a row: the name stands there once.
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows.num_rows, np.int8)), pa.array([name]))
    return rows.append_column(FILE, names)


def unread_file(columns: pa.Schema, reason: str) -> pa.Table:
    """Make one row without values, which is the dead letter of a file that cannot be read."""
    rows = pa.table([pa.nulls(1, field.type) for field in columns], schema=columns)
    first = columns.field(0)
    return rows.set_column(0, first.name, with_reasons(rows.column(0).combine_chunks(), first, {0: reason}))


@contextmanager
def _named(place: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, AlikeColumns, _NotReadable) as error:
        raise BadFile(
            f"{UNREAD}: {error}",
            place=place,
            remedy='replace it, take it out of the folder, or say on_bad_file = "skip"',
        ) from error


def _decompressed(data: pa.Buffer, place: str, format: str) -> pa.Buffer:
    if format not in ("csv", "json"):
        return data
    if kind := _COMPRESSED.get(f".{place.rpartition('.')[2].lower()}"):
        with pa.CompressedInputStream(pa.BufferReader(data), kind) as stream:
            data = stream.read_buffer()
    begin = bytes(memoryview(data)[:4])
    if mark := next((mark for mark in _OTHER_MARKS if begin.startswith(mark)), None):
        raise _NotReadable(f"it is written in {_OTHER_MARKS[mark]}, and only UTF-8 is read")
    return data


def _with_times(rows: pa.Table, options: Options) -> pa.Schema:
    """Return the columns of a CSV file. Strings in the pattern of an option are times or days."""
    columns = rows.schema
    for option, kind in (("timestampformat", pa.timestamp("us")), ("dateformat", pa.date32())):
        found = time_pattern(options.get(option, ""))
        if found is None:
            continue
        is_zoned = pt.is_timestamp(kind) and re.search("[XZ]", options[option])
        for at, field in enumerate(columns):
            values = rows.column(at)
            if pt.is_string(field.type) and pc.all(pc.match_substring_regex(values, found[0])).as_py():
                columns = columns.set(at, pa.field(field.name, pa.timestamp("us", "UTC") if is_zoned else kind))
    return columns


def _declarable(columns: pa.Schema) -> pa.Schema:
    # Only types that a schema text would declare.
    kinds = {field.name: field.type for field in columns}
    for name, kind in kinds.items():
        if pt.is_timestamp(kind):
            kinds[name] = pa.timestamp("us", kind.tz)
        elif pt.is_null(kind):
            kinds[name] = pa.string()
    return pa.schema(list(kinds.items()))


def _delimiter(options: Options) -> str:
    return options.get("sep", options.get("delimiter", ","))


def _parquet(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    opened = pyarrow.parquet.ParquetFile(pa.BufferReader(data))
    own = own_names(columns.names, opened.schema_arrow.names)
    rows = opened.read(list(own.values()))
    found = {name: _spelled(rows.column(given), columns.field(name).type) for name, given in own.items()}
    return _complete(found, columns, rows.num_rows)


def _orc(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    opened = pyarrow.orc.ORCFile(pa.BufferReader(data))
    own = own_names(columns.names, opened.schema.names)
    rows = opened.read(list(own.values()))
    found = {
        name: _spelled(_in_microseconds(rows.column(given)), columns.field(name).type) for name, given in own.items()
    }
    return _complete(found, columns, rows.num_rows)


def _spelled(column: pa.ChunkedArray, declared: pa.DataType) -> pa.ChunkedArray:
    if not pt.is_nested(column.type) or spelled(column.type, declared) == column.type:
        return column
    empty = respelled(pa.nulls(0, column.type), declared)
    return pa.chunked_array([respelled(chunk, declared) for chunk in column.chunks], empty.type)


def _apart(columns: pa.Schema) -> pa.Schema:
    # Nobody declared the columns: two of them must not differ only by case.
    refuse_alike(columns.names)
    return columns


def _in_microseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    # ORC always has nanoseconds.
    return column.cast(pa.timestamp("us", column.type.tz), safe=False) if pt.is_timestamp(column.type) else column


_BLOCK = 1 << 20
"""Bytes that Arrow reads of a text at a time; it reads no row that is longer."""


def _in_blocks(data: pa.Buffer, read: Callable[[int], pa.Table]) -> pa.Table:
    try:
        return read(_BLOCK)
    except pa.ArrowInvalid:
        if data.size <= _BLOCK:
            raise
    return read(min(data.size, 2**31 - 1))


class _NotReadable(ValueError):
    """The texts of a file are in another encoding, or its header has no column that is declared."""


def _csv(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    delimiter = _delimiter(options)
    uneven: list[list[str]] = []
    nulls = {"", options.get("nullvalue", "")}

    def even(row: pyarrow.csv.InvalidRow) -> str:
        uneven.extend(_values([row.text], delimiter))
        return "skip"

    data, damaged = _as_utf8(data)
    skipped, header = 0, columns.names
    if options.get("header", "false").lower() == "true":
        skipped, header = _header(data, delimiter)
    # Names of a header may be there twice; positions are not.
    positions = [str(at) for at in range(len(header))]
    over_lines = options.get("multiline", "false").lower() == "true"
    records, opened = (data.slice(skipped), []) if over_lines else _without_open_quotes(data.slice(skipped), delimiter)
    if header and records.size:
        parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=over_lines, invalid_row_handler=even)
        convert = pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(positions, pa.string()),
            null_values=[*nulls],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            check_utf8=False,  # A damaged text is its row's dead letter, and not the end of the file.
        )

        def read(block: int) -> pa.Table:
            uneven.clear()
            how = pyarrow.csv.ReadOptions(column_names=positions, use_threads=False, block_size=block)
            return pyarrow.csv.read_csv(pa.BufferReader(records), how, parse, convert)

        rows = _in_blocks(records, read)
    else:
        rows = pa.table([pa.array([], pa.string()) for _ in positions], names=positions)
    # Of lines that are longer than a header nobody knows which values are of which columns.
    longer = {} if header is columns.names else _too_long(uneven, len(header), rows.num_rows)
    longer |= {rows.num_rows + len(uneven) + at: _OPEN_QUOTE for at in range(len(opened))}
    if over_lines and rows.num_rows and np.count_nonzero(np.frombuffer(records, np.uint8) == _QUOTE) % 2:
        last = rows.slice(rows.num_rows - 1).to_pylist()[0].values()
        if any("\n" in (value or "") for value in last):
            longer[rows.num_rows - 1] = "a quote is opened and not closed before the end of the file"
    uneven += opened
    if uneven:
        width = len(header)
        padded = [
            [None if value in nulls else value for value in row[:width]] + [None] * (width - len(row)) for row in uneven
        ]
        more = [pa.array([row[at] for row in padded], pa.string()) for at in range(width)]
        rows = pa.concat_tables([rows, pa.table(more, names=positions)])
    if damaged:
        rows = pa.table([_given_bytes(column) for column in rows.columns], names=positions)
    if not header:
        return pa.table([pa.array([], pa.string()) for _ in columns], names=columns.names)
    own = own_names(columns.names, header)
    if lacking := [name for name in columns.names if name not in own]:
        lack = f"its header has no {', '.join(map(repr, lacking))}, but {', '.join(header)}"
        raise _NotReadable(f"{lack}{_other_separator(header)}")
    found = {name: rows.column(header.index(own[name])) for name in columns.names}
    found = {name: _in_iso(column, columns.field(name).type, options) for name, column in found.items()}
    if longer:
        first = columns.field(0)
        column = found[first.name]
        plain = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        found[first.name] = with_reasons(plain, first, longer)
    return pa.table(found)


def _other_separator(header: Sequence[str]) -> str:
    other = next((one for one in ";\t|" if len(header) == 1 and one in header[0]), None)
    return "" if other is None else f'; if {other!r} separates its columns, say options = {{ sep = "{other}" }}'


_LIMIT = threading.Lock()
"""Held while values may be longer than Python's limit, which is one for the whole process."""


def _values(lines: Sequence[str], delimiter: str) -> list[list[str]]:
    if sum(map(len, lines)) <= csv.field_size_limit():
        return list(csv.reader(lines, delimiter=delimiter))
    with _LIMIT:
        usual = csv.field_size_limit(2**31 - 1)
        try:
            return list(csv.reader(lines, delimiter=delimiter))
        finally:
            csv.field_size_limit(usual)


_QUOTE = ord('"')
_OPEN_QUOTE = 'a quote is opened in the line and not closed; multiLine = "true" reads values that go over lines'


def _without_open_quotes(data: pa.Buffer, delimiter: str) -> tuple[pa.Buffer, list[list[str]]]:
    # Arrow takes all that follows an open quote for its value, and may drop it: such lines are read apart.
    content = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(content == _QUOTE)
    if not len(quotes):
        return data, []
    ends = np.append(np.flatnonzero((content == ord("\n")) | (content == ord("\r"))), len(content))
    lines, first, at, counts = np.unique(
        np.searchsorted(ends, quotes), return_index=True, return_inverse=True, return_counts=True
    )
    # Nothing stays open where each line's quotes open and close in turn, at the borders of a value or doubled.
    around = np.concatenate([[_QUOTE], content, [_QUOTE]])
    borders = np.array([_QUOTE, ord("\n"), ord("\r"), *delimiter.encode()], np.uint8)
    closes = (np.arange(len(quotes)) - first[at]) % 2
    regular = np.isin(around[quotes + 2 * closes], borders)
    doubtful = (counts % 2 == 1) | (np.bincount(at, ~regular) > 0)
    kept, opened, done = list[pa.Buffer](), list[list[str]](), 0
    for line in lines[doubtful].tolist():
        begin, end = (int(ends[line - 1]) + 1 if line else 0), int(ends[line])
        text = data.slice(begin, end - begin).to_pybytes().decode()
        if len(_values([f"{text}\n", ""], delimiter)) < 2:  # The value goes on in the next line.
            opened += _values([text], delimiter)
            kept.append(data.slice(done, begin - done))
            done = end
    return (pa.py_buffer(b"".join([*kept, data.slice(done)])) if opened else data), opened


def _too_long(uneven: Sequence[Sequence[str]], width: int, first: int) -> dict[int, str]:
    """Say of lines with more values than the header why they cannot be read; `uneven` are the rows from `first` on."""
    return {
        first + at: f"the line has {len(row)} values, and the header {width} names"
        for at, row in enumerate(uneven)
        if len(row) > width
    }


TIME_PATTERNS = "a pattern such as dd/MM/yyyy HH:mm:ss.SSS, of the letters yyyy, MM, dd, HH, mm, ss, SSS and XXX"

_LETTERS = {
    "yyyy": r"(\d{4})", "MM": r"(\d\d)", "M": r"(\d\d?)", "dd": r"(\d\d)", "d": r"(\d\d?)", "HH": r"(\d\d)",
    "H": r"(\d\d?)", "mm": r"(\d\d)", "ss": r"(\d\d)", "S": r"(\d+)",
    "X": r"(Z|[+-]\d\d:?\d\d|[+-]\d\d)", "Z": r"(Z|[+-]\d\d:?\d\d)",
}  # fmt: skip
_WORDS_OF_TIME = re.compile(r"yyyy|MM?|dd?|HH?|mm|ss|S+|X+|Z|'([^']*)'|[^A-Za-z']")


def time_pattern(pattern: str) -> tuple[str, str] | None:
    """Return a regular expression of the texts that a pattern of Spark's gives, and what is ISO 8601 in their place.

    None where the pattern has more than numbers of years, months, days, hours, minutes, seconds and an offset.

    >>> time_pattern("dd/MM/yyyy")[1], time_pattern("d MMM yyyy")
    ('\\\\3-\\\\2-\\\\1', None)
    """
    expression, groups, end = "", dict[str, int](), 0
    for found in _WORDS_OF_TIME.finditer(pattern):
        letter = found[0][0]
        if found.start() != end:
            return None
        end = found.end()
        if not letter.isalpha():
            expression += re.escape(found[1] if letter == "'" else found[0])
            continue
        if letter in groups:
            return None
        groups[letter] = len(groups) + 1
        expression += _LETTERS.get(found[0]) or _LETTERS[letter]
    if end != len(pattern) or not {"y", "M", "d"} <= groups.keys():
        return None
    iso = "-".join(rf"\{groups[one]}" for one in "yMd")
    time = ":".join(rf"\{groups[one]}" for one in "Hms" if one in groups)
    zone = next((rf"\{groups[one]}" for one in "XZ" if one in groups), "")
    fraction = rf".\{groups['S']}" if "S" in groups else ""
    return f"^{expression}$", f"{iso}{f'T{time}{fraction}{zone}' if time else ''}"


def _in_iso(column: pa.ChunkedArray, kind: pa.DataType, options: Options) -> pa.ChunkedArray:
    # Texts that the pattern of the file does not give stay as they are.
    name = "timestampformat" if pt.is_timestamp(kind) else "dateformat" if pt.is_date(kind) else ""
    found = time_pattern(options[name]) if name in options else None
    if found is None or not pt.is_string(column.type):
        return column
    matches = pc.match_substring_regex(column, found[0])
    iso = pc.replace_substring_regex(column, found[0], found[1])
    for begins in ("-", "-", "T"):  # A day, month or hour of one digit gets two.
        iso = pc.replace_substring_regex(iso, rf"{begins}(\d)([-T:]|$)", rf"{begins}0\1\2")
    return pc.if_else(matches, iso, column)


def _header(data: pa.Buffer, delimiter: str) -> tuple[int, list[str]]:
    # None of a file without a line.
    end, text = 0, bytes(memoryview(data)[:_MOST_OF_HEADER])
    if not _END_OF_LINE.search(text.lstrip()):
        text = data.to_pybytes()
    while end < len(text):
        found = _END_OF_LINE.search(text, end)
        begin, end = end, len(text) if found is None else found.end()
        if line := text[begin:end].strip():
            (names,) = _values([line.decode()], delimiter)
            return end, names
    return end, []


def _as_utf8(data: pa.Buffer) -> tuple[pa.Buffer, bool]:
    # Where the texts are not UTF-8, each byte becomes one character.
    if bytes(memoryview(data)[:3]) == _BYTE_ORDER_MARK:
        data = data.slice(3)
    content = (
        pa.array([], pa.string())
        if not data.size
        else pa.Array.from_buffers(pa.large_string(), 1, [None, pa.py_buffer(np.array([0, data.size])), data])
    )
    try:
        content.validate(full=True)
    except pa.ArrowInvalid:
        # Arrow hands a damaged line to nobody: the whole file is read so, and each value made what it was.
        return pa.py_buffer(data.to_pybytes().decode("latin-1").encode()), True
    return data, False


def _given_bytes(texts: pa.ChunkedArray) -> pa.Array:
    # Each character is one byte that was given, and the bytes need not be UTF-8.
    values = [None if text is None else text.encode("latin-1") for text in texts.to_pylist()]
    return pa.array(values, pa.binary()).view(pa.string())


def _json(data: pa.Buffer, columns: pa.Schema, options: Options) -> pa.Table:
    found = _plain_lines(data, columns)
    return _lines_one_by_one(data, columns) if found is None else found


def _plain_lines(data: pa.Buffer, columns: pa.Schema) -> pa.Table | None:
    """Read lines in which every value is of its column's own kind, by Arrow; None where they are not such."""
    text = np.frombuffer(data, np.uint8)
    size = len(text)
    while size and text[size - 1] == ord("\n"):
        size -= 1
    breaks = np.flatnonzero(text[:size] == ord("\n"))
    return _plain_objects(data, columns, text, np.append(0, breaks + 1), np.append(breaks, size))


def _plain_objects(
    data: pa.Buffer, columns: pa.Schema, text: _Bytes, begins: _Places, ends: _Places, *, broken: bool = False
) -> pa.Table | None:
    """Read the values of `text`, from each of `begins` to its end; `data` has them with a line break between two.

    `broken` says that values have line breaks themselves. Arrow counts objects, not values. So None is the answer where
    a value might be no object, or several. A value that begins and ends with a brace has at least one object: JSON that
    goes on after a closing brace does not go on with an opening one.
    """
    alike = len(begins) and (ends > begins).all()
    alike = alike and (text[begins] == ord("{")).all() and (text[ends - 1] == ord("}")).all()
    kinds = {field.name: _read_by_arrow(field.type) for field in columns}
    if not alike or None in kinds.values() or _as_utf8(data)[1]:
        return None
    rows = _objects(data, pa.schema(list(kinds.items())), broken=broken)
    if rows is None or rows.num_rows != len(begins):
        return None
    missing = [name for name in columns.names if rows.column(name).null_count]
    written = data.to_pybytes() if missing else b""
    if rb'"\u' in written:
        return None  # A key may be written so.
    spelt = _spellings(written.decode(), missing)
    if any(len(names) > 1 for names in spelt.values()):
        return None  # Values differ in it, or one has both.
    if not spelt:
        return rows
    own = {name: spelt[name][0] if name in spelt else name for name in columns.names}
    rows = _objects(data, pa.schema([(own[name], kind) for name, kind in kinds.items()]), broken=broken)
    return rows and rows.rename_columns(columns.names)


def _objects(data: pa.Buffer, columns: pa.Schema, *, broken: bool) -> pa.Table | None:
    parse = pyarrow.json.ParseOptions(columns, unexpected_field_behavior="ignore")
    # Arrow begins a new block after any line break.
    read = pyarrow.json.ReadOptions(block_size=min(data.size, _MOST_OF_BLOCK) if broken else None)
    try:
        return pyarrow.json.read_json(pa.BufferReader(data), read, parse).select(columns.names)
    except pa.ArrowException:
        return None


def _spellings(text: str, names: Sequence[str]) -> dict[str, list[str]]:
    """Find how keys are written that differ from a column by case; columns whose keys are written just so are left out.

    >>> _spellings('{"K": 1, "ts": 2, "TS": 3}', ["k", "ts", "v"])
    {'k': ['K'], 'ts': ['TS', 'ts']}
    """
    lowered, found = text.lower(), dict[str, list[str]]()
    for name in names:
        if lowered.count(f'"{name.lower()}"') > text.count(f'"{name}"'):
            keys = re.compile(rf'"({re.escape(name)})"\s*:', re.IGNORECASE)
            spelt = sorted(set(keys.findall(text)))
            if spelt not in ([], [name]):
                found[name] = spelt
    return found


def _read_by_arrow(kind: pa.DataType) -> pa.DataType | None:
    # Arrow refuses a file with a value of another kind.
    if pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind) or pt.is_boolean(kind):
        return kind
    return None if pt.is_nested(kind) or pt.is_binary(kind) else pa.string()


_LINE_BREAK = pa.scalar(b"\n", pa.large_binary())


def json_rows(values: pa.LargeBinaryArray, columns: pa.Schema) -> pa.Table:
    """Read binary values each of which is one JSON object, such as those of messages."""
    if len(values) and not values.null_count:
        together = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        text = pc.binary_join(together, _LINE_BREAK).buffers()[2]
        _, places, data = values.buffers()
        ends = np.frombuffer(places, np.int64)[values.offset : values.offset + len(values) + 1]
        given = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.empty(0, np.uint8)
        ends, broken = ends - ends[0], bool((given == ord("\n")).any())
        found = _plain_objects(text, columns, given, ends[:-1], ends[1:], broken=broken)
        if found is not None:
            return found
    return _one_by_one([value or b"" for value in values.to_pylist()], columns, NO_OBJECT_OF_MESSAGE)


def _lines_one_by_one(data: pa.Buffer, columns: pa.Schema) -> pa.Table:
    lines = [line for line in data.to_pybytes().removeprefix(_BYTE_ORDER_MARK).split(b"\n") if line.strip()]
    return _one_by_one(lines, columns, NO_OBJECT)


def _one_by_one(lines: Sequence[bytes], columns: pa.Schema, reason: str) -> pa.Table:
    objects = [json_object(line) for line in lines]
    reasons = {at: _TOO_DEEP if _is_too_deep(lines[at]) else reason for at, one in enumerate(objects) if one is None}
    return rows_of_objects(objects, columns, reasons, lines, json_column)


def rows_of_objects(
    objects: Sequence[Mapping[str, Any] | None],
    columns: pa.Schema,
    reasons: Mapping[int, str],
    given: Sequence[bytes],
    column: Callable[[list[Any], pa.Field], pa.Array],
) -> pa.Table:
    """Make rows of objects that were read one by one.

    Those that have one of the `reasons` are dead letters, which show what was `given`. `column` makes a column of
    values.
    """
    reasons = dict(reasons)
    own, keys = _own_keys(objects, columns.names, reasons)
    found = {field.name: column(_values_of(own, keys, field.name), field) for field in columns}
    if not reasons:
        return pa.table(found)
    first = columns.field(0)
    found[first.name] = with_reasons(found[first.name], first, reasons)
    corrupt = [bytes_.decode("utf-8", "replace") if at in reasons else None for at, bytes_ in enumerate(given)]
    return pa.table(found).append_column(CORRUPT, pa.array(corrupt, pa.string()))


def _values_of(
    objects: Sequence[Mapping[str, Any]], own_keys: Sequence[Mapping[str, str]], name: str
) -> list[Any | None]:
    first = own_keys[0] if own_keys else {}
    if name in first and all(keys is first for keys in own_keys):
        key = first[name]
        return [one.get(key) for one in objects]
    return [one.get(keys[name]) if name in keys else None for one, keys in zip(objects, own_keys, strict=True)]


def _own_keys(
    objects: Sequence[Mapping[str, Any] | None], names: Sequence[str], reasons: dict[int, str]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, str]]]:
    of_keys = dict[tuple[str, ...], dict[str, str] | AlikeColumns]()
    found, own_keys = list[Mapping[str, Any]](), list[Mapping[str, str]]()
    last: tuple[str, ...] | None = None
    own: dict[str, str] | AlikeColumns = {}
    for at, one in enumerate(objects):
        keys = () if one is None else tuple(one)
        if keys == last and not isinstance(own, AlikeColumns):  # As in most messages of a topic.
            found.append(one or {})
            own_keys.append(own)
            continue
        last = keys
        if keys not in of_keys:
            try:
                of_keys[keys] = own_names(names, keys)
            except AlikeColumns as error:
                of_keys[keys] = error
        own = of_keys[keys]
        if isinstance(own, AlikeColumns):
            reasons[at] = str(own)
        found.append(one or {})
        own_keys.append({} if isinstance(own, AlikeColumns) else own)
    return found, own_keys


def json_object(line: bytes) -> dict[str, Any] | None:
    """Read the JSON object of a line, whose numbers keep all digits.

    None for anything else, and where it is nested too deep.
    """
    if _is_too_deep(line):
        return None
    try:
        value = json.loads(line, parse_float=_Number, parse_int=_Number)
        if b"\\ud" in line.lower():
            json.dumps(value, ensure_ascii=False).encode()  # Half a character is not a text.
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _is_too_deep(line: bytes) -> bool:
    # What reads values, and writes them as texts, calls itself at each level.
    if line.count(b"[") + line.count(b"{") <= DEEPEST:
        return False
    signs = np.frombuffer(_TEXT_OF_JSON.sub(b"", line), np.uint8)
    steps = np.isin(signs, [*b"[{"]).astype(np.int64) - np.isin(signs, [*b"]}"])
    return int(steps.cumsum().max(initial=0)) > DEEPEST


class _Number(str):
    """A number as it is written, so that no digit of it is lost."""


def json_column(values: list[Any], field: pa.Field) -> pa.Array:
    """Make a column of values of `json_object`."""
    texts = [_text(value) for value in values]
    return judged(values, field, texts) if pt.is_nested(field.type) else pa.array(texts, pa.string())


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else _written(value)


def _written(value: Any) -> str:
    # As JSON, with numbers as they were written.
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(name)}: {_written(one)}' for name, one in value.items())}}}"
    return f"[{', '.join(map(_written, value))}]" if isinstance(value, list) else json.dumps(value)


def _complete(found: Mapping[str, pa.ChunkedArray], columns: pa.Schema, rows: int) -> pa.Table:
    # Columns that a file lacks are NULL.
    return pa.table({field.name: found.get(field.name, pa.nulls(rows, field.type)) for field in columns})


READERS: dict[str, Callable[[pa.Buffer, pa.Schema, Options], pa.Table]] = {
    "parquet": _parquet,
    "orc": _orc,
    "csv": _csv,
    "json": _json,
}
"""How each format is read."""
