"""The family of each of Arrow's types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt
import pytest

from midstream.expr.types import family

TYPES = [
    *(pa.null(), pa.bool_(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.decimal32(9, 2), pa.decimal64(18, 0), pa.decimal128(38, 5), pa.decimal256(76, 0)),
    *(pa.string(), pa.large_string(), pa.string_view()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16)),
    *(pa.date32(), pa.date64(), pa.time32("ms"), pa.time64("ns"), pa.duration("s")),
    *(pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin"), pa.month_day_nano_interval()),
    *(pa.list_(pa.int8()), pa.struct([("a", pa.int8())]), pa.map_(pa.int8(), pa.string()), pa.uuid()),
]
TESTS = {
    "null": [pt.is_null],
    "boolean": [pt.is_boolean],
    "integer": [pt.is_integer],
    "decimal": [pt.is_decimal],
    "float": [pt.is_floating],
    "text": [pt.is_string, pt.is_large_string, pt.is_string_view],
    "binary": [pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary, pt.is_binary_view],
    "date": [pt.is_date],
    "time": [pt.is_time],
    "timestamp": [pt.is_timestamp],
    "duration": [pt.is_duration],
}


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_type_is_of_the_family_whose_test_it_passes(kind: pa.DataType) -> None:
    passed = [name for name, tests in TESTS.items() if any(test(kind) for test in tests)]
    assert passed == ([] if family(kind) == "other" else [family(kind)])
    if not pt.is_nested(kind) and not isinstance(kind, pa.BaseExtensionType):
        assert family(pa.dictionary(pa.int8(), kind)) == family(kind)
