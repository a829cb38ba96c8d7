"""What runs a query, for people and programs: its plan, the chain it runs in, and what they have done.

In: a manifest, and the report of it. Out: drawings and JSON values; nothing is changed.
"""

from midstream.explain.query_explained import explain

__all__ = ["explain"]
