"""Forms: other ways to run a tree of window joins, written `name(TREE)` in plan notation.

In: a compiled tree. Out: the operator that runs in its place. A form is one file here, `WORD_form.py`, or a class in
another package that declares it as an entry point of `midstream.operators`; no other file names it.
"""
