"""From text to a typed query: CQL, expressions and their evaluation on columns, durations, schemas, job files.

In: the text of a query, a schema or a job file, and the schemas of the streams. Out: a `Query` whose conditions are
classified (equality, band, anything else) and whose expressions evaluate on Arrow columns; or a `LanguageError` that
points into the text.

To read it, begin with `query` (what comes out) and `parse` (how): `dialect` reads a text into a tree, `parts` takes the
tree apart into queries, `sources`, `select_list` and `grouping` read the clauses, `bind` the expressions, `predicates`
sorts the conditions. `types`, `coerce` and `rules` give every expression its type; `functions` names what can be
called, `kernels` compute it on columns, `evaluate` walks an expression.
"""
