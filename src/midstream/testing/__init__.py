"""Conformance suites for what other packages add: an author runs over their own what runs over everything in here.

In: a class that fulfils a contract, such as a `Scheme`. Out: nothing, or an `AssertionError` that says which drawn case
shows what is wrong. Answers are held against DuckDB: `pip install 'midstream[testing]'`.
"""

from midstream.testing.schemes import check_scheme

__all__ = ["check_scheme"]
