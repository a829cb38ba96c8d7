"""A query whose text is bound: frozen values, and what follows from them.

In: sources, predicates and expressions. Out: a `Query` with its nodes, its schema, its event time, the windows that its
conditions imply, and the rows that it checks.
"""
