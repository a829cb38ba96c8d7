"""What a manifest says of its queries, for people and programs: plans, states, chains, counters, migrations.

In: a manifest. Out: drawings and JSON values; nothing is changed.
"""

from midstream.explain.metrics import chain_states, metrics
from midstream.explain.query import explain
from midstream.explain.running import migration_progress, running_boxes

__all__ = ["chain_states", "explain", "metrics", "migration_progress", "running_boxes"]
