"""Spread a running query over nodes, otherwise than before, or no longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from typing_extensions import override

from midstream.commands.add_query import group_for
from midstream.commands.base import StepCommand
from midstream.commands.migrate import inherit
from midstream.logical.query import query_of
from midstream.model.command import Part, Prompt, QueryName
from midstream.model.errors import PlanError, QueryError
from midstream.model.events import Event, QuerySpread
from midstream.model.manifest import Manifest, QueryEntry
from midstream.model.node_spread import AUTO_NODES, OFF
from midstream.plan.notation import parse_plan
from midstream.proposals.proposals import withdraw
from midstream.ring.declare import AUTO, check_orders, spread_entry
from midstream.ring.relocate import AGGRESSIVE, PASSIVE, carried_over, relocation_of
from midstream.ring.ring_members import mates_of, regrouped
from midstream.ring.spreading import spreadings
from midstream.sharing.chains import members
from midstream.sharing.membership import release
from midstream.units.draft import Draft


def choices_of_scheme() -> tuple[str, ...]:
    """List the ways to spread a running join, for forms."""
    return (AUTO, *spreadings(), OFF)


@dataclass(frozen=True)
class Spread(StepCommand):
    """Spread a running join over nodes, over other nodes, or no longer; no row is lost and no answer changes.

    The option `relocation` says how nodes come and go: `aggressive` lists rows at their new nodes at once, `passive`
    has them run out where they lie. The query leaves those that it shares with, and stays by itself. Without a `plan`
    it keeps its probing orders, if it has some that the scheme can go by.
    """

    examples = (
        "ckpt pairs auto --nodes 4",
        "ckpt pairs off",
    )

    query: Annotated[str, QueryName]
    scheme: Annotated[
        str,
        Prompt(
            "psp_d, hash_hops, ..., auto; or off: back to lanes.",
            "SCHEME",
            choices=choices_of_scheme,
        ),
    ]
    nodes: Annotated[int | str | None, Prompt("Over how many nodes, or auto; 4 unless you say.", "N")] = None
    options: Annotated[
        Mapping[str, Any],
        Prompt(
            "master, segment, copies, count_bound or objective; may be repeated.",
            parts=(
                Part(
                    "--relocation",
                    "relocation",
                    "WAY",
                    "aggressive: old rows move at once; passive: they stay until they expire.",
                ),
            ),
        ),
    ] = field(default_factory=dict)
    plan: Annotated[str, Prompt("Probing orders; see docs/spreading.md.", "PLAN")] = ""

    @override
    def apply(self, draft: Draft) -> None:
        name, entry = self.query, draft.entry(self.query)
        spread = self._without(draft, entry) if self.scheme == OFF else self._over_nodes(draft, entry)
        withdraw(draft, name, f"query {name} was spread otherwise")
        if entry.shares:
            mates = [mate for mate in members(draft.manifest, entry.chain) if mate != name]
            draft.manifest = release(draft.manifest, name)
            if mates:
                inherit(draft, name, entry, mates[0])
                spread = replace(spread, migrations={})
        draft.manifest = draft.manifest.with_query(name, spread)
        if entry.nodes is not None and entry.group != spread.group:
            draft.manifest = regrouped(draft.manifest, entry.group)
        draft.changed = True
        before = OFF if entry.nodes is None else entry.nodes.scheme
        now, count = (OFF, 0) if spread.nodes is None else (spread.nodes.scheme, spread.nodes.nodes)
        draft.events.append(QuerySpread(draft.manifest.step, name, before, now, count))

    def _over_nodes(self, draft: Draft, entry: QueryEntry) -> QueryEntry:
        if entry.entered == draft.manifest.step != entry.since:
            raise QueryError(
                f"one step cannot both change and spread query {self.query!r}", place=f"query {self.query}",
                remedy="spread the query in a later step",
            )  # fmt: skip
        bare = replace(entry, plan=self.plan, chain="", demands={}, spread=(), nodes=None)
        place, query = f"query {self.query}", query_of(entry)
        way, options = relocation_of(self.options, place)
        if way == PASSIVE and _keeps_others(draft.manifest, self.query):
            raise PlanError(
                f"query {self.query!r} cannot use passive relocation, because it shares its nodes with other queries",
                place=place,
                remedy=f"use relocation {AGGRESSIVE}, which is the default",
            )  # fmt: skip
        spread = self._by_orders(draft, bare, entry.plan, options)
        assert spread.nodes is not None
        nodes = carried_over(draft.manifest, entry, spread.nodes, way, place)
        check_orders(query, nodes, parse_plan(spread.plan, query), place)
        return replace(spread, nodes=nodes)

    def _by_orders(self, draft: Draft, bare: QueryEntry, present: str, options: Mapping[str, Any]) -> QueryEntry:
        def spread(plan: str) -> QueryEntry:
            entry = replace(bare, plan=plan)
            return spread_entry(draft.manifest, self.query, entry, self.scheme, self.nodes, options)

        if bare.plan:
            return spread(bare.plan)
        try:
            return spread(present)
        except PlanError:
            return spread("")

    def _without(self, draft: Draft, entry: QueryEntry) -> QueryEntry:
        if entry.nodes is None:
            raise QueryError(
                f"query {self.query!r} is not spread over nodes", place=f"query {self.query}",
                remedy=f"name a spread: {AUTO}, or one of the spreads in docs/spreading.md",
            )  # fmt: skip
        if entry.nodes.began == draft.manifest.step:  # Its rows lie in lanes until the step is done.
            raise QueryError(
                f"one step cannot move query {self.query!r} to nodes and back to lanes", place=f"query {self.query}",
                remedy="bring the query back to lanes in a later step",
            )  # fmt: skip
        if self.options:
            raise QueryError(
                f"lanes cannot use the option {sorted(self.options)[0]!r}, because lanes take over all rows at once",
                place=f"query {self.query}", remedy="leave out the options",
            )  # fmt: skip
        self._refuse_what_lanes_have_not()
        group, spread = group_for(draft.manifest, query_of(entry))
        return replace(entry, group=group, spread=spread, nodes=None, private=True)

    def _refuse_what_lanes_have_not(self) -> None:
        if self.nodes is not None:
            raise QueryError(
                "a query in lanes has no nodes", place=f"query {self.query}",
                remedy="leave the nodes out; rescale sets the number of lanes of the whole job",
            )  # fmt: skip
        if self.plan:
            raise QueryError(
                f"one step cannot change the probing orders of query {self.query!r} and bring the query back to lanes",
                place=f"query {self.query}", remedy="leave the plan out; migrate the query in a later step",
            )  # fmt: skip

    @override
    def is_done_by(self, event: Event) -> bool:
        if not isinstance(event, QuerySpread) or event.query != self.query:
            return False
        return self.scheme in (AUTO, event.new) and self.nodes in (None, AUTO_NODES, event.nodes)


def _keeps_others(manifest: Manifest, name: str) -> bool:
    # Or had such rows until this step.
    spread = manifest.queries[name].nodes
    return spread is not None and (spread.regrouped == manifest.step or bool(mates_of(manifest, name)))
