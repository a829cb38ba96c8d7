"""Every course of the streams, one file each."""

from benchmarks.optimizer.scenario import Scenario
from benchmarks.optimizer.scenarios.bad_start import BAD_START
from benchmarks.optimizer.scenarios.bursts import BURSTS
from benchmarks.optimizer.scenarios.eight_streams import EIGHT_STREAMS
from benchmarks.optimizer.scenarios.flapping import FLAPPING
from benchmarks.optimizer.scenarios.gradual_drift import GRADUAL_DRIFT
from benchmarks.optimizer.scenarios.hot_key import HOT_KEY
from benchmarks.optimizer.scenarios.many_queries import MANY_QUERIES
from benchmarks.optimizer.scenarios.moving_skew import MOVING_SKEW
from benchmarks.optimizer.scenarios.rate_flip import RATE_FLIP
from benchmarks.optimizer.scenarios.seasonal import SEASONAL
from benchmarks.optimizer.scenarios.selectivity_flip import SELECTIVITY_FLIP
from benchmarks.optimizer.scenarios.steady import STEADY
from benchmarks.optimizer.scenarios.stopping_stream import STOPPING_STREAM
from benchmarks.optimizer.scenarios.three_way_flip import THREE_WAY_FLIP

__all__ = ["SCENARIOS", "STORY"]

DRIFTING = (
    SELECTIVITY_FLIP, RATE_FLIP, GRADUAL_DRIFT, HOT_KEY, SEASONAL, THREE_WAY_FLIP, MOVING_SKEW, STOPPING_STREAM,
    EIGHT_STREAMS, MANY_QUERIES,
)  # fmt: skip
OTHERS = (STEADY, BURSTS, FLAPPING, BAD_START)

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*DRIFTING, *OTHERS)}
"""Every scenario by name, in the order in which they run."""

STORY = "three_way_flip"
"""The one that a picture of its own shows, in the README."""
