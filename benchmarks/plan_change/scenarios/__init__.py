"""Every way in which data drift here, one file each."""

from benchmarks.plan_change.scenario import Scenario
from benchmarks.plan_change.scenarios.flapping import FLAPPING
from benchmarks.plan_change.scenarios.gradual_drift import GRADUAL_DRIFT
from benchmarks.plan_change.scenarios.hot_key import HOT_KEY
from benchmarks.plan_change.scenarios.rate_flip import RATE_FLIP
from benchmarks.plan_change.scenarios.selectivity_flip import SELECTIVITY_FLIP

__all__ = ["SCENARIOS"]

SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario for scenario in (SELECTIVITY_FLIP, RATE_FLIP, GRADUAL_DRIFT, FLAPPING, HOT_KEY)
}
"""Every scenario by name, in the order in which they run."""
