"""Queries that are spread otherwise while they run: over other nodes, by other schemes, out of lanes and back."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import midstream as ms
from midstream.cli.main import main
from midstream.commands.add_query import AddQuery
from midstream.commands.base import taken
from midstream.commands.spread import Spread
from midstream.model.events import MigrationEnded, QuerySpread, StateRebuilt
from midstream.model.node_spread import NodeSpread
from midstream.ring.spreading import spreadings
from midstream.sql.job_file import parse_job
from tests.unit.embedded.test_spread import (
    ONE_KEY,
    PLAN,
    THETA,
    WITHOUT_COPIES,
    answers,
    chunks,
    engine,
    rows,
    spread_of,
)

FILTERED = THETA.replace("WHERE", "WHERE A.y > 1 AND C.x < 5 AND")
NARROWER = FILTERED.replace("20 SECONDS", "11 SECONDS")


def still(sql: str, steps: range) -> list[list[str]]:
    """What the query answers when nothing is done to it."""
    made = engine()
    made.add_query("q", sql, plan=PLAN)
    return answers(made, steps)


@pytest.mark.parametrize("first", [None, "one_lane", "hash_hops", "psp_i"])
def test_from_each_to_each(first: str | None) -> None:
    """One way after the other, now over more nodes, now over fewer, and back to lanes in between."""
    made = engine()
    made.add_query("q", ONE_KEY, spread=first)
    found = answers(made, range(2))
    for step, name in enumerate(spreadings(), 2):
        made.spread("q", name, nodes=2 + 3 * (step % 2))
        found += answers(made, range(step, step + 1))
        assert spread_of(made).scheme == name
    made.spread("q", "off")
    found += answers(made, range(len(found), len(found) + 2))
    assert found == still(ONE_KEY, range(len(found)))
    assert not [event for event in made.events if isinstance(event, StateRebuilt)]
    told = [(event.old, event.new) for event in made.events if isinstance(event, QuerySpread)]
    assert told[0] == (first or "off", "atr")
    assert told[-1] == ("psp_i", "off")


def test_rows_are_listed_at_other_nodes_and_not_written_again() -> None:
    made = engine()
    made.add_query("q", THETA, plan=PLAN, history=False)
    answers(made, range(3))
    for step, name in enumerate(("psp_d", "hash_hops", "psp"), 3):
        before = chunks(made)
        made.spread("q", name, nodes=4)
        made.push({})
        assert made.manifest.step == step
        assert chunks(made) <= before
        plain = engine()
        plain.add_query("q", THETA, plan=PLAN)
        answers(plain, range(3))
        assert made.metrics()["state_rows"] == plain.metrics()["state_rows"]


@pytest.mark.parametrize("name", WITHOUT_COPIES)
def test_a_query_leaves_those_that_it_shares_with_and_takes_its_own_rows_along(name: str) -> None:
    """Its filter and its window are narrower than what is kept for the others."""
    made = engine()
    made.add_query("others", THETA, plan=PLAN)
    made.add_query("q", NARROWER, plan=PLAN)
    found = answers(made, range(3))
    assert made.manifest.queries["q"].shares
    made.spread("q", name, nodes=3)
    found += answers(made, range(3, 4))
    alone = engine()
    alone.add_query("q", NARROWER, spread=name, nodes=3)
    answers(alone, range(4))
    assert made.report().query("q").state_rows == alone.report().query("q").state_rows
    found += answers(made, range(4, 5))
    made.spread("q", "off")
    found += answers(made, range(5, 7))
    assert found == still(NARROWER, range(7))


def test_the_others_go_on_as_before() -> None:
    made, alone = engine(), engine()
    made.add_query("one", THETA)
    made.add_query("q", FILTERED)
    alone.add_query("one", THETA)
    for step in range(6):
        if step == 2:
            made.spread("q", "psp", nodes=3)
        if step == 4:
            made.spread("q", "off")
        found, expected = (sorted(map(str, one.push(rows(step))["one"].to_pylist())) for one in (made, alone))
        assert found == expected


def test_a_late_query_sees_at_the_nodes_what_it_saw_in_its_chain() -> None:
    made, chained = engine(), engine()
    for one in (made, chained):
        one.add_query("first", THETA)
        for step in range(3):
            one.push(rows(step))
        one.add_query("q", THETA.replace("20 SECONDS", "40 SECONDS"))
    expected = answers(chained, range(3, 8))
    found = answers(made, range(3, 5))
    assert made.manifest.queries["q"].sees != "all"
    made.spread("q", "psp_d", nodes=3)
    assert found + answers(made, range(5, 8)) == expected


@pytest.mark.parametrize("mode", ["auto", "mem_opt", "cpu_opt", "pull_up", "push_down"])
@pytest.mark.parametrize("before", [None, "pull_up"])
def test_of_a_chain_s_rows_it_takes_those_that_pass_its_filter(mode: str, before: str | None) -> None:
    """Under `pull_up` a chain keeps rows that do not pass, and no bit of theirs tells them."""
    made = engine()
    made.reshare(before or mode)
    made.add_query("q", FILTERED, plan=PLAN)
    made.add_query("narrower", NARROWER, plan=PLAN)
    found = answers(made, range(3))
    made.reshare(mode)
    made.spread("q", "hash_hops", nodes=3)
    found += answers(made, range(3, 6))
    assert found == still(FILTERED, range(6))


def test_to_nodes_and_back_within_one_step_is_refused_and_nothing_is_lost() -> None:
    made = engine()
    made.add_query("q", ONE_KEY)
    found = answers(made, range(2))
    made.spread("q", "psp_d", nodes=3)
    with pytest.raises(ms.QueryError, match="one step cannot move query"):
        made.spread("q", "off")
    made.spread("q", "atr", nodes=2)
    found += answers(made, range(2, 4))
    made.spread("q", "off")
    made.spread("q", "psp", nodes=2)
    found += answers(made, range(4, 6))
    assert found == still(ONE_KEY, range(6))


@pytest.mark.parametrize("options", [{"strategy": "hybmig"}, {"strategy": "parallel_track", "hold_new": True}])
def test_amid_a_migration_nothing_is_lost_and_the_migration_is_over(options: dict[str, Any]) -> None:
    made = engine()
    made.add_query("q", THETA, plan="((A B) C)")
    found = answers(made, range(2))
    made.migrate("q", "(A (B C))", **options)
    found += answers(made, range(2, 3))
    assert made.migration("q") is not None
    made.spread("q", "psp_d", nodes=3)
    found += answers(made, range(3, 6))
    assert made.migration("q") is None
    assert [event for event in made.events if isinstance(event, MigrationEnded)]
    assert sorted(chain.from_iterable(found)) == sorted(chain.from_iterable(still(THETA, range(6))))


def test_back_in_lanes_it_can_have_any_plan_and_spreads_with_the_lanes() -> None:
    made = engine()
    made.add_query("q", ONE_KEY, spread="ctr", nodes=4)
    found = answers(made, range(2))
    made.spread("q", "off")
    made.rescale(3)
    found += answers(made, range(2, 3))
    made.migrate("q", "((A B) C)")
    found += answers(made, range(3, 5))
    assert made.manifest.queries["q"].plan == "((A B) C)"
    assert made.report().query("q").lanes == 3
    assert found == still(ONE_KEY, range(5))


def test_queries_that_come_back_one_after_the_other_keep_rows_of_their_own() -> None:
    """The rows of one have columns that those of the other lack, though both began with the same step."""
    other = THETA.replace("A.x AS a, B.x AS b, C.y AS c", "A.ts AS a, B.ts AS b, C.ts AS c")
    made, alone = engine(), engine()
    for name, sql in (("q", THETA), ("other", other)):
        made.add_query(name, sql, spread="psp", nodes=3)
        alone.add_query(name, sql, plan=PLAN)
    for step in range(6):
        if step in (2, 3):
            made.spread("q" if step == 2 else "other", "off")
        found, expected = made.push(rows(step)), alone.push(rows(step))
        for name in ("q", "other"):
            assert sorted(map(str, found[name].to_pylist())) == sorted(map(str, expected[name].to_pylist()))


def test_orders_that_the_new_way_cannot_go_by_give_way_to_others() -> None:
    made = engine()
    made.add_query("q", THETA, plan="[A: B C | B: C A | C: B A]", spread="psp")
    made.push(rows(0))
    with pytest.raises(ms.PlanError, match="must visit the master first"):
        made.spread("q", "atr", plan="[A: B C | B: C A | C: B A]")
    made.spread("q", "psp_d")
    made.push(rows(1))
    assert made.manifest.queries["q"].plan == "[A: B C | B: C A | C: B A]"
    made.spread("q", "atr", master="B")
    made.push(rows(2))
    assert made.manifest.queries["q"].plan == "[A: B C | B: C A | C: B A]"
    made.spread("q", "atr", master="A")
    made.push(rows(3))
    assert made.manifest.queries["q"].plan == "[A: B C | B: A C | C: A B]"
    assert spread_of(made).master == "A"


def test_what_makes_no_sense_is_refused_and_the_query_runs_on() -> None:
    made = engine()
    made.add_query("q", THETA)
    made.add_query("counted", "SELECT COUNT(*) AS n FROM A, B WHERE A.x = B.x WINDOW 20 SECONDS EVERY 5 SECONDS")
    made.push(rows(0))
    for query, scheme, said in (
        ("nobody", "psp", "there is no query"),
        ("q", "off", "is not spread over nodes"),
        ("q", "ring", "unknown spread 'ring'"),
        ("counted", "psp", "an aggregate cannot be spread"),
    ):
        with pytest.raises(ms.MidstreamError, match=said):
            made.spread(query, scheme)
    made.change_query("q", FILTERED)
    with pytest.raises(ms.QueryError, match="one step cannot both change and spread"):
        made.spread("q", "psp")
    assert made.manifest.queries["q"].nodes is None


def test_a_checkpoint_is_taken_up_with_other_nodes_and_by_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, found = tmp_path / "checkpoint", []
    with engine(path) as made:
        made.add_query("q", THETA, spread="psp_d", nodes=3)
        found += answers(made, range(2))
    assert main(["spread", str(path), "q", "hash_hops", "--nodes", "5"]) == 0
    assert "is in the log" in capsys.readouterr().out
    with engine(path) as made:
        found += answers(made, range(2, 4))
        assert (spread_of(made).scheme, spread_of(made).nodes) == ("hash_hops", 5)
        made.spread("q", "off")
    with engine(path) as made:
        found += answers(made, range(4, 6))
    assert found == still(THETA, range(6))
    assert main(["spread", str(path), "q", "psp", "--nodes", "0"]) == 2
    assert "use 1 to 1024" in capsys.readouterr().err
    assert main(["spread", str(path), "q", "atr", "--option", "master=Z"]) == 2
    assert "use one of: A, B, C" in capsys.readouterr().err


def test_a_script_that_declares_another_spread_changes_it_and_one_that_does_not_leaves_it(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"

    def opened(**asked: Any) -> NodeSpread | None:
        with engine(path) as made:
            made.add_query("q", THETA, **asked)
            made.push({})
            return made.manifest.queries["q"].nodes

    first = opened(spread="psp_d", nodes=3)
    assert first is not None
    with engine(path) as made:
        made.spread("q", "hash_hops", nodes=2)
        made.push({})
    commanded = opened(spread="psp_d", nodes=3)
    assert commanded is not None
    assert (commanded.scheme, commanded.nodes) == ("hash_hops", 2)
    anew = opened(spread="psp_d", nodes=4)
    assert anew is not None
    assert (anew.scheme, anew.nodes) == ("psp_d", 4)
    assert opened() is None
    assert opened() is None


def test_a_job_on_spark_takes_the_commands_that_an_engine_takes() -> None:
    manifest = replace(engine().manifest, job="a job of Spark's")
    assert manifest.is_on_spark
    added = taken(manifest, AddQuery("q", THETA, spread="psp", nodes=3)).queries["q"].nodes
    spread = taken(taken(manifest, AddQuery("q", THETA)), Spread("q", "auto", 2)).queries["q"].nodes
    assert added is not None
    assert spread is not None
    assert [(one.scheme, one.nodes) for one in (added, spread)] == [("psp", 3), ("psp_d", 2)]


def test_a_job_file_says_how_its_queries_are_spread() -> None:
    text = (
        'checkpoint = "c"\n[streams.A]\nformat = "json"\ntimestamp = "ts"\n'
        '[queries.q]\nsql = "SELECT 1"\nsink = { format = "json", path = "out" }\n'
    )
    asked = parse_job(f'{text}spread = "ctr"\nnodes = 3\nspread_options = {{ copies = 3 }}').queries["q"]
    assert (asked.spread, asked.nodes, asked.spread_options) == ("ctr", 3, {"copies": 3})
    with pytest.raises(ms.LanguageError, match="spread is missing"):
        parse_job(f"{text}nodes = 3")
