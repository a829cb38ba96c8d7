"""From text to a bound query: CQL, durations, schemas, job files.

In: the text of a query, a schema or a job file, and the schemas of the streams. Out: a `Query` whose conditions are
classified (equality, band, anything else) and whose expressions evaluate on Arrow columns; or a `LanguageError` that
points into the text.

To read it, begin with `parse`: `dialect` reads a text into a tree, `parts` takes the tree apart into queries,
`from_clause`, `select_list` and `grouping` read the clauses, and `bind` the expressions.
"""
