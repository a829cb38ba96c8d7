"""Conformance suites for what other packages add: an author runs over their own what runs over everything in here.

In: a class that fulfils a contract, such as a `Scheme` or a `Sink`. Out: nothing, or an `AssertionError` that says what
is wrong in which case. Answers are held against DuckDB: `pip install '.[testing]'` in a clone.
"""

from midstream.testing.operators import check_operator
from midstream.testing.policies import check_policy
from midstream.testing.schemes import check_scheme
from midstream.testing.sinks import SinkCase, check_sink
from midstream.testing.strategies import check_strategy

__all__ = ["SinkCase", "check_operator", "check_policy", "check_scheme", "check_sink", "check_strategy"]
