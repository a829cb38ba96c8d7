"""What the functions of the language compute, on columns: one module per family of values.

`datum` is what they work on. A kernel takes the type of its result and its arguments; what fails in a row (an overflow,
a division by zero, a text that is not a number) is NULL there. The catalogue in `functions` names them.
"""
