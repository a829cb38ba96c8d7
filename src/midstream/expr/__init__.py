"""Scalar expressions: their types, their functions, and their values on columns.

In: an expression and the columns that it names. Out: a column, with the rows for which the expression fails.

`types`, `coerce` and `rules` give every expression its type. `functions` names what can be called, `kernels` compute it
on columns, and `evaluate` walks an expression.
"""
