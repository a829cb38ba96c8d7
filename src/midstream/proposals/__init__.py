"""What users allow the optimizer, and what it proposes to them.

In: a manifest, or the draft that a command changes. Out: the queries that move together, with their settings, and the
plans and lanes that wait for an answer.
"""
