"""Functions of texts, patterns, times and bits, by the names that the binder calls them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from midstream.expr import failing, rules
from midstream.expr.expression import Call
from midstream.expr.function import MANY, Function, fixed
from midstream.expr.kernels import bits, date_functions, json, letters, number, pattern
from midstream.expr.kernels.datum import Datum, lift
from midstream.expr.rules import Rule, counted
from midstream.expr.shaped_rules import bits as of_bits
from midstream.expr.shaped_rules import (
    bucket,
    cut_to,
    groups,
    growing_windows,
    rewritten,
    separated,
    shaped,
    signs,
    tests,
    windows,
    zoned,
)
from midstream.expr.types import BOOLEAN, DOUBLE, INT64, TEXT, TIMESTAMP, TIMESTAMPTZ

_REALS = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "degrees": np.degrees, "radians": np.radians, "cbrt": np.cbrt,
}  # fmt: skip
_TESTS = {"isnan": pc.is_nan, "isinf": pc.is_inf}


def _failing(
    count: int, rule: Rule, kernel: Callable[..., Datum], fails: Callable[[Call], bool] = lambda call: True
) -> Function:
    # Of constants for which the function has a value, a call cannot fail.
    return Function(counted(count, count, rule), kernel, fails)


_TEXTS: dict[str, Function] = {
    "replace": _failing(3, shaped(TEXT, "text", "text", "text"), letters.replace, failing.replaces_by_row),
    "starts_with": fixed(2, shaped(BOOLEAN, "text", "text"), letters.starts_with),
    "ends_with": fixed(2, shaped(BOOLEAN, "text", "text"), letters.ends_with),
    "contains": fixed(2, shaped(BOOLEAN, "text", "text"), letters.contains),
    "left": fixed(2, shaped(TEXT, "text", "whole"), letters.left),
    "right": fixed(2, shaped(TEXT, "text", "whole"), letters.right),
    "repeat": _failing(2, shaped(TEXT, "text", "whole"), letters.repeat, failing.repeats_often),
    "lpad": _failing(3, shaped(TEXT, "text", "whole", "text"), letters.padded(at_front=True)),
    "rpad": _failing(3, shaped(TEXT, "text", "whole", "text"), letters.padded(at_front=False)),
    "split_part": fixed(3, shaped(TEXT, "text", "text", "whole"), letters.split_part),
    "translate": fixed(3, shaped(TEXT, "text", "text", "text"), letters.rows_of(letters.translate)),
    "concat_ws": Function(counted(2, MANY, separated), letters.concat_ws),
    "reverse": fixed(1, shaped(TEXT, "text"), letters.reverse),
    "position": fixed(2, shaped(INT64, "text", "text"), letters.position),
    "ascii": fixed(1, shaped(INT64, "text"), letters.code_of),
    "chr": _failing(1, shaped(TEXT, "whole"), letters.character),
    "md5": fixed(1, shaped(TEXT, "text"), letters.md5),
    "sha256": fixed(1, shaped(TEXT, "text"), letters.sha256),
    "initcap": fixed(1, shaped(TEXT, "text"), letters.capitalized),
    "split": fixed(2, shaped(pa.list_(TEXT), "text", "text"), letters.split),
    "json_extract_string": fixed(2, shaped(TEXT, "text", "word"), json.extract_string),
    "json_extract": fixed(2, shaped(TEXT, "text", "word"), json.extract),
    "regexp_like": fixed(2, shaped(BOOLEAN, "text", "pattern"), pattern.matches),
    "regexp_replace": Function(counted(3, 4, rewritten), pattern.replaced),
    "regexp_extract": fixed(3, groups(shaped(TEXT, "text", "pattern", "whole")), pattern.extracted),
}

_TIMES: dict[str, Function] = {
    "date_trunc": fixed(2, cut_to(date_functions.UNITS), date_functions.truncated),
    "time_bucket": fixed(3, bucket, date_functions.bucketed),
    "hop_ends": Function(counted(3, 4, windows), date_functions.hop_ends),
    "cumulate_ends": Function(counted(3, 4, growing_windows), date_functions.cumulate_ends),
    "date_diff": fixed(3, cut_to(date_functions.COUNTED), date_functions.difference),
    "timestampdiff": fixed(3, cut_to(date_functions.COUNTED), date_functions.whole_units),
    "at_time_zone": fixed(2, zoned, date_functions.at_zone),
    "strftime": fixed(2, shaped(TEXT, "moment", "word"), date_functions.formatted),
    "epoch": fixed(1, shaped(DOUBLE, "moment"), date_functions.epoch),
    "epoch_ms": fixed(1, shaped(INT64, "moment"), date_functions.epoch_ms),
    "to_timestamp": _failing(1, shaped(TIMESTAMPTZ, "real"), date_functions.from_seconds),
    "make_timestamp_ms": _failing(1, shaped(TIMESTAMP, "whole"), date_functions.from_ms),
    "as_uuid": _failing(1, shaped(TEXT, "text"), letters.uuid),
    "try_uuid": fixed(1, shaped(TEXT, "text"), letters.uuid),
    "make_date": _failing(3, shaped(pa.date32(), "whole", "whole", "whole"), date_functions.date_of),
    "last_day": fixed(1, shaped(pa.date32(), "moment"), date_functions.last_day),
    "dayname": fixed(1, shaped(TEXT, "moment"), date_functions.name_of("%A")),
    "monthname": fixed(1, shaped(TEXT, "moment"), date_functions.name_of("%B")),
}


def _sign(type: pa.DataType, value: Datum) -> Datum:
    return pc.cast(pc.sign(value), type, safe=False)


_NUMBERS: dict[str, Function] = {
    **{name: fixed(1, rules.reals, number.real(function)) for name, function in _REALS.items()},
    **{name: fixed(1, tests, lambda _, a, test=test: test(a)) for name, test in _TESTS.items()},
    **{name: fixed(2, of_bits, lambda _, a, b, done=done: done(a, b)) for name, done in bits.BITWISE.items()},
    "bit_not": fixed(1, of_bits, lambda _, a: pc.bit_wise_not(a)),
    "shift_right": fixed(2, of_bits, bits.shift_right),
    "atan2": fixed(2, rules.reals, lambda type, a, b: lift(np.arctan2, type, a, b)),
    "sign": fixed(1, signs, _sign),
    "trunc": fixed(1, rules.wholes, number.whole(pc.trunc)),
}

MORE: dict[str, Function] = {**_TEXTS, **_TIMES, **_NUMBERS}
"""Each of them by name."""
