"""The demo: a year of flights replayed through Spark, plans changed in mid-run, every answer checked against DuckDB.

In: the flights of a package, and a folder. Out: what happened before, during and after each change, and the verdict.
"""
