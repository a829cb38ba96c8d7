"""What a manifest says of its queries: plans, states, chains, counters, migrations. Read-only."""

from midstream.explain.metrics import chain_states, metrics
from midstream.explain.query import explain
from midstream.explain.running import migration_progress, running_boxes

__all__ = ["chain_states", "explain", "metrics", "migration_progress", "running_boxes"]
