"""What queries share: the chain of slices that a query runs in, who reads how far, and the filters between slices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from midstream.checkpoint.running_states import running_boxes
from midstream.dashboard.job_reading import JobReading
from midstream.dashboard.view import DashboardView
from midstream.explain.chain import ChainView, chain_values
from midstream.model.errors import QueryError
from midstream.units.chain_unit import chain_unit

CHAINS_SHOWN, SLICES_SHOWN, MEMBERS_SHOWN, NAMES_SHOWN = 200, 100, 60, 20
"""So many chains are listed; of one so many slices and queries are shown, of a list so many names."""


def sharing(reading: JobReading, options: Mapping[str, str]) -> dict[str, Any]:
    """Show what queries share: chains, their slices, and who reads how far.

    `sharing`: the scheme; `queries`: how many there are. `chains`, those of most queries first: `name`, `plan`,
    `queries` (how many), `first` of them by name, `slices`, `state_rows`; `chains_left_out`. `alone`: how many queries
    share with none, and the first. `chain`: the one of that name among the options, else the one that the chosen query
    runs in, else the first, as `explain.chain` has it, None where there is none: of its `slices`, of the names `ending`
    in each, and of its `queries`, only some, the queries evenly over their windows; `members` and `slices_left_out`
    count all, and those left out.
    """
    report = reading.report
    chains = sorted(report.chains.values(), key=lambda one: (-len(one.queries), one.name))
    shared = {name for one in report.chains.values() if len(one.queries) > 1 for name in one.queries}
    alone = [name for name, query in report.queries.items() if name not in shared and not query.nodes_with]
    return {
        "sharing": report.sharing,
        "queries": len(report.queries),
        "chains": [
            {
                "name": one.name,
                "plan": one.plan,
                "queries": len(one.queries),
                "first": sorted(one.queries)[:NAMES_SHOWN],
                "slices": one.slices,
                "state_rows": one.state_rows,
            }
            for one in chains[:CHAINS_SHOWN]
        ],
        "chains_left_out": max(0, len(chains) - CHAINS_SHOWN),
        "alone": {"count": len(alone), "first": alone[:NAMES_SHOWN]},
        "chain": _chain(reading, options, [one.name for one in chains]),
    }


def _chain(reading: JobReading, options: Mapping[str, str], names: list[str]) -> dict[str, Any] | None:
    name = options.get("chain")
    if not name:
        query = reading.query(options)
        name = query.chain if query is not None and query.chain is not None else next(iter(names), None)
    if name is None:
        return None
    if name not in names:
        raise QueryError(f"there is no chain {name!r}", place="chain", remedy="choose a chain from the list")
    unit = chain_unit(reading.manifest, name)
    view = ChainView(reading.manifest, reading.report, unit, running_boxes(reading.manifest, unit))
    value = chain_values(view, analyze=True)
    # Queries come in rising order of their windows: of many, the ones that are kept lie evenly among them.
    members = list(value["queries"].items())
    kept = dict(reversed(members[:: -max(1, -(-len(members) // MEMBERS_SHOWN))]))
    slices = [
        {**one, "ending": one["ending"][:NAMES_SHOWN], "ends": len(one["ending"])}
        for one in value["slices"][:SLICES_SHOWN]
    ]
    return {
        **value,
        "queries": kept,
        "members": len(members),
        "slices": slices,
        "slices_left_out": len(value["slices"]) - len(slices),
        "joins": value.get("joins", [])[:SLICES_SHOWN],
    }


VIEW = DashboardView("sharing", "Sharing", sharing, order=40, options=("chain", "query"))
