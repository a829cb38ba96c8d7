"""From text to a typed query: CQL, expressions and their evaluation on columns, durations, schemas, job files.

In: the text of a query, a schema or a job file, and the schemas of the streams. Out: a `Query` whose conditions are
classified (equality, band, anything else) and whose expressions evaluate on Arrow columns; or a `LanguageError` that
points into the text.
"""
