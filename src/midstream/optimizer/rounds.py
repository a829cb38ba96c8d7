"""What rounds of a running query showed, one after the other: rates of its streams, selectivities of its selections.

A round lasts from one look at a query to the next (OM §4.1). Counters grow as long as a query runs, so a round is the
difference of two looks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midstream.model.counters import Counters
from midstream.model.ids import CounterKey
from midstream.model.manifest import Manifest
from midstream.operators.source import SourceOperator
from midstream.optimizer.decayed_mean import DECAY, ROUNDS, DecayedMean
from midstream.optimizer.observe import Observed

SECOND = 1_000_000


@dataclass(frozen=True)
class Look:
    """What had been counted when a query was looked at: rows before and after selection by alias, and event time."""

    arrived: Mapping[str, int] = field(default_factory=dict)
    selected: Mapping[str, int] = field(default_factory=dict)
    time: int | None = None


@dataclass(frozen=True)
class RoundMeans:
    """Decayed means over the last rounds, by alias, and the look that ended the last one: a value a manifest can keep.

    Rates are of rows that arrive, in a second of event time; selectivities are shares of them that selections keep.
    """

    last: Look = Look()
    rates: Mapping[str, DecayedMean] = field(default_factory=dict)
    selectivities: Mapping[str, DecayedMean] = field(default_factory=dict)

    def ended(self, look: Look, rounds: int = ROUNDS, decay: float = DECAY) -> RoundMeans:
        """The means with one more round, which the look ends; the first look ends none."""
        if self.last.time is None or look.time is None or look.time <= self.last.time:
            return self if self.last.time is not None else RoundMeans(look)
        rates, selectivities = dict(self.rates), dict(self.selectivities)
        for alias in sorted(look.arrived):
            rows = look.arrived[alias] - self.last.arrived.get(alias, 0)
            kept = look.selected[alias] - self.last.selected.get(alias, 0)
            mean = rates.get(alias, DecayedMean(rounds=rounds, decay=decay))
            rates[alias] = mean.observed(rows * SECOND / (look.time - self.last.time))
            if rows > 0:
                share = selectivities.get(alias, DecayedMean(rounds=rounds, decay=decay))
                selectivities[alias] = share.observed(kept / rows)
        return RoundMeans(look, rates, selectivities)


def look_at(manifest: Manifest, observed: Observed) -> Look:
    """What a query's sources have counted until now; the time is that of the stream that is furthest ahead."""
    arrived, selected = {}, {}
    back = {label: alias for alias, label in observed.labels.items()}
    for operator in observed.operators:
        if isinstance(operator, SourceOperator):
            counted = manifest.operators.get(CounterKey(observed.group, operator.id), Counters())
            arrived[back[operator.spec.label]] = counted.rows_in
            selected[back[operator.spec.label]] = counted.rows_out
    known = [manifest.progress[s.stream] for s in observed.query.sources if s.stream in manifest.progress]
    return Look(arrived, selected, max((p.greatest for p in known if p.greatest is not None), default=None))
