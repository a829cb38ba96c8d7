"""Forms: other ways to run a tree of window joins, written `name(TREE)` in plan notation.

A form is one file here, or a class in another package that declares it as an entry point of the group
`midstream.operators`; no other file names it.
"""
