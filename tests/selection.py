"""What `make test` leaves to `make verify`: files and folders, each with what `make test` runs of it all the same.

These tests get the marker `verify`, as four fifths of every random suite have it. Plain `pytest` selects as `make test`
does (`-m "not verify and not soak"`), among all files or those that are named; `make verify` runs the rest too
(`-m "verify and not soak"`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from zlib import crc32

from tests.drawing import FIFTHS, SOAK, chosen_fifth

BUDGET = float(os.environ.get("MIDSTREAM_TEST_SECONDS", 850))
"""Seconds that all tests of `make test` may take together, over two processes; a fifth more fails the run.

They took 770 on 2026-11-27, in 7 minutes and 7 seconds; this machine is up to a fifth slower at times.
"""

VERIFY: Mapping[str, tuple[str, ...]] = {
    # One test per invariant, three crash points with real kills, one sharing, one rescale, one ring, one store. The
    # simulated drivers of tests/property carry the commit protocol.
    "tests/spark/": (
        "test_blocks.py::test_answers_are_those_of_the_embedded_engine[by files]",
        "test_blocks.py::test_every_row_comes_to_its_lane_once",
        "test_blocks.py::test_what_all_tasks_saw_is_added_up",
        "test_blocks.py::test_what_tasks_read_by_themselves_comes_to_the_lanes[by blocks]",
        "test_crashes.py::test_the_driver_is_killed_at_three_points",
        "test_dealing.py",
        "test_invariants.py::test_every_kind_of_query[3-disordered]",
        "test_invariants.py::test_rows_are_dealt_to_lanes",
        "test_invariants.py::test_every_plan_gives_the_same_answer",
        "test_invariants.py::test_migrations_change_no_answer",
        "test_invariants.py::test_cuts_and_lanes_change_no_answer[cuts2]",
        "test_invariants.py::test_queries_come_and_go_beside_a_query",
        "test_invariants.py::test_restarts_change_no_answer[auto]",
        "test_jobs.py::test_a_step_is_one_spark_job",
        "test_jobs.py::test_commands_while_it_runs",
        "test_object_stores.py::test_a_checkpoint_restored_while_its_sink_is_ahead",
        "test_outputs.py::test_late_rows_and_dead_letters",
        "test_parcel_files.py",
        "test_refusals.py::test_queries",
        "test_sequences.py::test_every_step_is_the_oracle_s[2",
        "test_sharing.py::test_queries_come_and_go[auto]",
        "test_spreads.py::test_queries_share_a_ring_while_one_comes_and_one_goes",
        "test_spreads.py::test_rows_that_come_back_from_nodes_are_met",
        "test_states_of_tasks.py",
        "test_translate.py",
    ),
    # Whether random suites meet what they are for says only the count of most of their cases.
    "tests/conformance/test_conformance.py::": ("test_no_answer_changes",),
    "tests/optimizer/test_policies.py::test_every_policy_switches": (),
    "tests/property/test_migration_invariance.py::test_migrations_were_exercised": (),
    "tests/property/test_shared_rings.py::test_rings_were_shared": (),
    "tests/property/test_spreads.py::test_every_way_had_cases": (),
    "tests/sharing/test_everything_together.py::test_everything_was_exercised": (),
    "tests/sharing/test_least_state.py::test_rows_were_kept_and_given_up": (),
    "tests/sharing/test_sets_of_queries.py::test_sets_were_exercised": (),
    # What takes long because there is much of it.
    "tests/embedded/test_decisions_replay.py": (),
    "tests/extensions/test_strategies.py::test_every_strategy_passes_the_suite[": ("gpt", "hybmig", "moving_state"),
    "tests/sinks/test_crashes.py::test_the_driver_is_killed[": ("delta", "postgresql-before_postgresql_commits"),
    "tests/unit/embedded/test_many_queries.py::test_a_further_query_that_gets_nothing_costs_few_calls[": (
        "in a chain",
    ),
    "tests/unit/state/test_large_texts.py::test_rows_that_a_migration_holds_back_are_told_the_same": (),
    "tests/unit/state/test_large_texts.py::test_a_push_of_too_long_texts_is_refused": (),
    "tests/unit/step/test_choose.py::test_least_work_is_least_work": (),
    "tests/unit/embedded/test_explain_chain.py::test_metrics_of_a_thousand_are_those_of_each": (),
    "tests/unit/migration/test_jisc.py::test_a_hundred_joins": (),
    "tests/property/test_bad_input.py::test_unicode_and_very_long_strings": (),
    "tests/property/test_permanent.py::test_any_migration[": ("the same sources with a conjunct more and less-",),
    "tests/sharing/test_permanent.py::test_members_migrate[": ("False-cpu_opt",),
    "tests/test_selection.py::test_a_run_beyond_the_budget_fails": (),
    "tests/unit/sql/test_depth.py::test_a_text_that_is_taken_runs[700": (),
    "tests/embedded/test_faults.py::test_a_store_that_answers_too_late": (),
    "tests/unit/cli/test_run_console.py::test_what_may_take_long_shows_that_it_goes_on[": ("command0",),
    "tests/unit/embedded/test_explain_chain.py::test_a_thousand_queries_fit_on_a_page": (),
    "tests/unit/embedded/test_spread_length.py::test_a_query_with_little_to_do_gets_one_node_and_one_with_much": (),
    "tests/unit/embedded/test_rebuild.py::test_a_lost_join_state_is_computed_again[three": (),
    "tests/optimizer/test_price_of_moves.py::test_the_work_of_a_move_is_foreseen_within_three": (),
    "tests/optimizer/test_schedule.py::test_what_was_once_found_from_outside_ends_well[drift": (),
    "tests/optimizer/test_hash_seeds.py": (),
    "tests/optimizer/test_family.py::test_": (
        "an_answer_",
        "a_choice_",
        "sets_are_apart",
        "streams_that_flap_cost_little_more_than_the_best_fixed_plan[3020",
    ),
    "tests/embedded/test_kills_amid_relocation.py": (),
    "tests/unit/ring/test_even_ages.py::test_nodes_of_a_ring_compare_alike_on_steady_streams[": ("psp_d",),
    "tests/embedded/test_generator_source.py::test_it_is_killed_at_three_points_and_goes_on_exactly": (),
    "tests/embedded/test_kills_amid_cuts.py": (),
    "tests/unit/ring/test_even_ages.py::test_slices_bounded_by_count_smooth_a_burst[": ("psp_d",),
    # Of what surrounds the engine, a first look.
    "tests/unit/cli/test_lab.py": ("::test_an_unknown",),
    "tests/unit/lab/": ("test_contents.py", "test_figures.py", "test_docs.py", "test_generator.py"),
    "tests/unit/benchmarks/": ("test_plan_change_parts.py::test_marks_tell_rows_apart",),
    "tests/dashboard/": ("test_server.py", "test_rows_and_steps.py", "test_browser.py::test_a_migration_is_watched"),
    "tests/docs/test_site.py": (),
    "tests/docs/test_pictures.py": (),
    "tests/docs/test_snippets.py": ("::test_python_that_fails_is_found",),
    "tests/test_packages.py": ("::test_the_newest_notes_are_of_this_version",),
    "tests/test_notebook.py": ("::test_every_cell_draws_what_it_gives",),
    "tests/test_examples.py": ("::test_the_readme_example_runs",),
    "tests/sinks/test_merged.py::test_a_merge_is_killed_at_each_point": (),
    "tests/embedded/test_demo.py": ("::test_once_it_is_hot",),
}
"""For a path the beginnings of what stays in `make test`, relative to it: its first look."""


IN_FIFTHS = (
    "tests/embedded/test_nexmark.py::test_a_query_of_nexmark_answers_as_duckdb",
    "tests/property/test_permanent.py::test_a_restart_at_every_step",
    "tests/property/test_permanent.py::test_any_cut_and_lanes",
    "tests/sharing/test_permanent.py::test_more_filters_than_a_word_has_bits",
    "tests/sharing/test_permanent.py::test_rows_that_come_out_of_order_after_a_command_are_joined",
    "tests/unit/checkpoint/test_report.py::test_all_faces_agree_on_every_number",
    "tests/unit/embedded/test_explain_chain.py::test_slices_add_up",
    "tests/unit/embedded/test_names.py::test_a_stream_of_any_name_is_joined",
    "tests/unit/embedded/test_sharing.py::test_a_query_answers_as_it_would_alone",
    "tests/unit/embedded/test_spread_relocation.py::test_rows_of_every_way_run_out_beside_those_of_every_other",
    "tests/unit/pipeline/test_doctor.py::test_what_loses_nothing_is_mended",
    "tests/unit/migration/test_bad_input.py::test_what_is_wrong_is_refused_and_the_query_runs_on",
    "tests/unit/migration/test_contract.py::test_the_answer_is_the_same_as_without",
    "tests/unit/migration/test_hybmig.py::test_the_background_ends_the_migration_sooner",
    "tests/unit/migration/test_jisc.py::test_keys_of_many_kinds",
    "tests/unit/migration/test_jisc.py::test_migrations_overlap_and_lead_back",
    "tests/unit/migration/test_jisc_ranges.py::test_migrations_overlap_and_lead_back",
    "tests/unit/migration/test_transitions.py::test_migrations_overlap_and_lead_back",
    "tests/unit/migration/test_transitions.py::test_what_both_plans_have_in_common_counts_as_one_stream",
    "tests/unit/operators/eddy/test_migrations.py::test_moving_state_carries_every_form_to_every_other",
    "tests/unit/operators/eddy/test_migrations.py::test_their_own_strategies_come_from_every_form_and_end_at_once",
    "tests/unit/operators/test_equal_content.py::test_while_a_migration_is_under_way_and_after",
    "tests/unit/operators/test_time_ranges.py::test_every_pair_comes_once_in_order_of_time",
    "tests/unit/step/test_choose.py::test_work_and_duration_turn_out_as_predicted",
    "tests/unit/step/test_what_rests.py::test_a_step_is_the_same_whether_states_rest_and_are_remembered_or_are_read",
)
"""Tests of many combinations, each of which is long: they are dealt to fifths as the cases of random suites are."""


def only_in_verify(nodeid: str) -> bool:
    """Tell whether a test belongs to `make verify` alone."""
    if nodeid.partition("[")[0] in IN_FIFTHS and not SOAK and crc32(nodeid.encode()) % len(FIFTHS) != chosen_fifth():
        return True
    for path, kept in VERIFY.items():
        if nodeid.startswith(path):
            return not nodeid[len(path) :].startswith(kept)
    return False
