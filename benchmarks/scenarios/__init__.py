"""What is measured: seeded inputs and the texts of their queries."""

from benchmarks.scenarios.base import Scenario
from benchmarks.scenarios.w1 import W1A, W1B
from benchmarks.scenarios.w2 import W2A, W2B
from benchmarks.scenarios.w3 import W3
from benchmarks.scenarios.w4 import W4
from benchmarks.scenarios.w5 import W5

__all__ = ["SCENARIOS", "Scenario"]

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (W1A, W1B, W2A, W2B, W3, W4, W5)}
"""Every scenario by name, in the order in which they run."""
