"""Expressions as a reader would write them; `Expression.text` is what tells them apart."""

from __future__ import annotations

from midstream.language.expression import Call, Column, Expression, Literal

SIGNS = {
    "or": "or", "and": "and", "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%",
}  # fmt: skip
LEVELS = (("or",), ("and",), ("eq", "ne", "lt", "le", "gt", "ge"), ("add", "sub"), ("mul", "div", "mod"))
"""From those that bind least to those that bind most."""


def infix(expression: Expression) -> str:
    """The expression with its operators between their operands, and parentheses where they are needed.

    >>> import pyarrow as pa
    >>> v, two = Column(pa.int64(), "A", "v"), Literal(pa.int64(), 2)
    >>> infix(Call(pa.bool_(), "gt", (Call(pa.int64(), "mul", (Call(pa.int64(), "add", (v, two)), two)), two)))
    '(A.v + 2) * 2 > 2'
    """
    match expression:
        case Column():
            return expression.text()
        case Literal():
            return "NULL" if expression.value is None else repr(expression.value)
        case Call(_, function, (left, right)) if function in SIGNS:
            own = _level(function)
            return f"{_inner(left, own)} {SIGNS[function]} {_inner(right, own + 1)}"
        case Call(_, "not", (inner,)):
            return f"not {_inner(inner, len(LEVELS))}"
        case Call(_, "in", (value, *among)):
            return f"{_inner(value, _level('add'))} in ({', '.join(map(infix, among))})"
        case Call(_, function, arguments):
            return f"{function}({', '.join(map(infix, arguments))})"
    return expression.text()


def conjunction(conditions: tuple[Expression, ...]) -> str:
    """Conditions that all must hold, in order of text; '' for none.

    >>> conjunction(())
    ''
    """
    return " and ".join(sorted(_inner(c, _level("and") if len(conditions) > 1 else 0) for c in conditions))


def _level(function: str) -> int:
    return next(at for at, functions in enumerate(LEVELS) if function in functions)


def _inner(expression: Expression, least: int) -> str:
    binary = isinstance(expression, Call) and expression.function in SIGNS and len(expression.arguments) == 2
    text = infix(expression)
    return f"({text})" if binary and isinstance(expression, Call) and _level(expression.function) < least else text
