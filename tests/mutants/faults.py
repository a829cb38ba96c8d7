"""The seeded faults: each is a plausible slip in one place, which tests of `make test` must notice.

A fault replaces a text that its file has exactly once (`test_faults.py` holds that). `tests` come first when it runs,
the likeliest first; only if none of them fails do the other tests of its room run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A slip in a file of `src/midstream`, what it breaks, and the tests that should notice first."""

    name: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        """The room that the file belongs to."""
        return self.file.partition("/")[0]


FAULTS = (
    # --- migration
    Fault(
        "jisc-present-key-is-complete",
        "migration/just_in_time/completion.py",
        "        return codes[among(codes, self.left(probed, column).codes)]\n",
        "        held = [self.distinct(run.combinations, column) for run in self.lane.join(probed.spec).old]\n"
        "        absent = ~np.isin(codes, np.concatenate([np.zeros(0, np.int64), *held]))\n"
        "        return codes[absent & among(codes, self.left(probed, column).codes)]\n",
        "a key that a state has some rows of is taken to be complete there",
        ("tests/unit/migration/test_jisc.py::TestTheRule::test_a_key_that_is_present_need_not_be_complete",),
    ),
    Fault(
        "jisc-completes-with-new-rows",
        "migration/just_in_time/completion.py",
        "            here = _before(here, start)\n",
        "",
        "a state is completed by rows that its own probes have brought already",
        ("tests/unit/migration/test_jisc.py::TestTheRule::test_a_key_that_is_present_need_not_be_complete",),
    ),
    Fault(
        "characteristics-bitmap-not-united",
        "migration/hybrid/characteristics.py",
        "            bits |= (~entry",
        "            bits = (~entry",
        "only the last entry of the characteristics table says what the old plan leaves out",
        ("tests/unit/migration/test_hybmig.py::test_the_background_ends_the_migration_sooner",),
    ),
    Fault(
        "hybmig-background-skips-a-piece-with-itself",
        "migration/hybrid/background.py",
        "for b in (*done_right, *fresh_right)]",
        "for b in done_right]",
        "rows of one piece of background work do not meet each other",
        ("tests/unit/migration/test_hybmig.py::test_the_background_ends_the_migration_sooner",),
    ),
    Fault(
        "old-rows-spent-a-moment-early",
        "migration/under_way/task.py",
        "any(bounds[clock] > end for",
        "any(bounds[clock] >= end for",
        "a migration ends while a row may still come that joins the last old one at its window's edge",
        ("tests/unit/migration/test_contract.py::test_a_row_at_the_very_end_of_an_old_row_s_window_still_meets_it",),
    ),
    Fault(
        "old-rows-spent-where-one-stream-is",
        "migration/under_way/task.py",
        "return all(self.source_is_spent(",
        "return any(self.source_is_spent(",
        "a migration ends as soon as the old rows of one stream are spent",
        ("tests/unit/migration/test_contract.py::test_a_row_at_the_very_end_of_an_old_row_s_window_still_meets_it",),
    ),
    Fault(
        "parallel-track-old-plan-keeps-all-new-results",
        "migration/parallel_track.py",
        "lambda c: 2 * self._all_new(c)), full=3)",
        "lambda c: 2 * self._all_new(c)), full=4)",
        "both plans give the results of new rows only",
        ("tests/unit/migration/test_parallel_track.py::test_new_results_are_held_back_and_released_in_one_burst",),
    ),
    Fault(
        "ghm-feeds-a-row-twice",
        "migration/under_way/feeding.py",
        "arrived.take(slice(taken, None))))",
        "arrived))",
        "rows that were fed in the step they came in stay in the queue",
        ("tests/unit/migration/test_ghm.py::test_the_old_plan_answers_and_the_queue_is_eaten_by_the_budget",),
    ),
    # --- sharing
    Fault(
        "sharing-window-edge-excluded",
        "sharing/results.py",
        '        here = np.searchsorted(limits, ages[label], "left")',
        '        here = np.searchsorted(limits, ages[label], "right")',
        "a result as old as a query's window is not the query's",
        ("tests/unit/sharing/test_table_5_1.py::test_the_engine_finds_the_output_of_the_chain_at_once",),
    ),
    Fault(
        "sharing-lineage-off-by-one",
        "sharing/results.py",
        ".bit(text)) & 1 != 0",
        ".bit(text) + 1) & 1 != 0",
        "a query gets the results of the next filter",
        ("tests/unit/engine/test_sharing.py::test_rows_go_from_the_middle_of_what_is_held",),
    ),
    Fault(
        "sharing-sees-by-event-time",
        "sharing/results.py",
        "here = arrived >= member.from_step",
        "here = self.column(label, TIME) >= (member.past or 0)",
        "a query that came late sees rows by their event time, not by when they arrived",
        ("tests/unit/engine/test_sharing.py::test_a_query_that_began_later_meets_what_is_held",),
    ),
    Fault(
        "sharing-chunk-in-the-slice-of-its-oldest-row",
        "state/join_state.py",
        "bisect_left(cuts, max(now - born[1], 0))",
        "bisect_left(cuts, max(now - born[0], 0))",
        "a chunk moves to the next slice while its younger rows belong to this one",
        ("src/midstream/state/join_state.py", "tests/unit/sharing/test_table_5_1.py"),
    ),
    Fault(
        "sharing-last-reader-sets-the-window",
        "sharing/membership.py",
        "sizes[key] = max(sizes.get(key, -1), demand.size)",
        "sizes[key] = demand.size",
        "when a query goes, rows are kept for the last of the others and not for the widest",
        ("tests/sharing/test_permanent.py::test_windows_and_filters_change",),
    ),
    Fault(
        "sharing-partitions-overlap",
        "sharing/partition.py",
        "chosen = rows.take(words == self.word)",
        "chosen = rows.take((words & self.word) == self.word)",
        "a row that passes two filters is joined in several partitions",
        ("tests/unit/engine/test_sharing.py::test_rows_go_from_the_middle_of_what_is_held",),
    ),
    Fault(
        "sharing-wider-window-is-exact-too-early",
        "sharing/coverage.py",
        "young = _less(times.purged, known.size)",
        "young = _less(times.purged, size)",
        "a query with a wider window claims rows that the narrower one has purged",
        (
            "tests/unit/sharing/test_coverage.py::test_a_window_that_grows_keeps_rows_from_where_the_narrow_one_had_purged",
        ),
    ),
    Fault(
        "sharing-new-filter-not-tested",
        "state/base_state.py",
        "np.where(all_hold(lineage.conditions_of(one), batch), one.mask, 0)\n    at =",
        "one.mask\n    at =",
        "rows kept from before pass a new query's filter untested",
        ("tests/sharing/test_permanent.py::test_one_not_wider_sees_all_at_once",),
    ),
    # --- ring
    Fault(
        "ring-skips-one-meeting",
        "ring/ring_course.py",
        "for route in self.routes[:start]]",
        "for route in self.routes[: start - 1]] if start else []",
        "new rows of two streams that follow each other in the routes never meet",
        ("tests/unit/engine/test_spread.py::test_no_row_is_kept_twice_and_no_pair_compared_twice",),
    ),
    Fault(
        "ring-meets-twice-at-a-slice-edge",
        "ring/spreadings/psp.py",
        "np.append(ends, 0)[place] + 1",
        "np.append(ends, 0)[place]",
        "a row at the edge of two slices is met at both nodes",
        ("tests/unit/ring/test_exactly_one_meeting.py::test_exactly_one_meeting",),
    ),
    Fault(
        "ring-window-edge-excluded",
        "ring/deployment.py",
        "low = newest - self.windows[label]\n",
        "low = newest - self.windows[label] + 1\n",
        "a row of age exactly its window is not visited",
        ("tests/unit/ring/test_exactly_one_meeting.py::test_exactly_one_meeting",),
    ),
    Fault(
        "ring-slice-begins-a-row-late",
        "ring/slice_table.py",
        'np.searchsorted(self.starts, ts, "right") - 1, 0)',
        'np.searchsorted(self.starts, ts, "left") - 1, 0)',
        "the first row of a slice is placed at the node before",
        ("tests/unit/ring/test_exactly_one_meeting.py::test_exactly_one_meeting",),
    ),
    Fault(
        "ring-passive-boundary-moved",
        "ring/spreading.py",
        "older = rows.ts < self.begins",
        "older = rows.ts <= self.begins",
        "rows of the moment at which new nodes begin lie at the old ones, where nobody looks",
        ("tests/unit/ring/test_exactly_one_meeting.py::test_exactly_one_meeting_where_nodes_come_and_go_passively",),
    ),
    Fault(
        "ring-result-to-queries-of-any-row",
        "ring/logical_slices.py",
        "return reduce(np.bitwise_and, vector)",
        "return reduce(np.bitwise_or, vector)",
        "a result goes to queries that only one of its rows serves",
        ("tests/unit/ring/test_many_queries.py::test_bitmaps_route_as_windows_do",),
    ),
    Fault(
        "ring-purges-early",
        "step/spreading/listed.py",
        "        return self.ends(batch) >= self.bound",
        "        return self.ends(batch) > self.bound",
        "nodes drop a row one unit before its window ends",
        ("tests/unit/engine/test_spread.py::test_no_row_is_kept_twice_and_no_pair_compared_twice",),
    ),
    Fault(
        "spread-ends-in-another-lane",
        "step/spreading/taken_over.py",
        "slots(key, spec.stream, whole).astype(np.int64) % count",
        "slots(key, spec.stream, whole).astype(np.int64) * count // 4096",
        "rows that come back from nodes lie in other lanes than those of their key that come later",
        (
            "tests/unit/engine/test_spread_changes.py::test_back_in_lanes_it_can_have_any_plan_and_spreads_with_the_lanes",
        ),
    ),
    # --- operators
    Fault(
        "rows-window-one-too-long",
        "state/base_state.py",
        "return later(now, window.size - 1)",
        "return later(now, window.size)",
        "a ROWS window holds one row too many",
        (
            "tests/unit/state/test_base_state.py::test_a_range_window_ends_after_its_size_and_a_rows_window_with_the_last_row",
        ),
    ),
    Fault(
        "outer-join-pads-twice",
        "operators/outer_join.py",
        "at = indices((ends >= span[0]) & (ends < span[1]))",
        "at = indices((ends >= span[0]) & (ends <= span[1]))",
        "an unmatched row whose window ends where a step ends is given twice",
        ("tests/unit/engine/test_outer_joins.py::test_a_row_whose_window_ends_where_a_step_ends_is_padded_once",),
    ),
    Fault(
        "outer-join-forgets-older-matches",
        "operators/outer_join.py",
        "matches = [*old, new]",
        "matches = [new]",
        "a row that was matched in an earlier step is padded at the end of its window",
        ("tests/unit/engine/test_outer_joins.py::test_what_a_subquery_makes_of_columns_is_null_in_padded_rows",),
    ),
    Fault(
        "aggregate-instant-twice",
        "operators/aggregate.py",
        "np.minimum(ends, end - 1)",
        "np.minimum(ends, end)",
        "an instant at the watermark is answered in two steps",
        ("tests/unit/operators/test_aggregate.py::test_a_row_of_age_exactly_the_window_still_counts",),
    ),
    Fault(
        "difference-logs-a-deletion-twice",
        "operators/difference.py",
        "changed = (inside != before) & (times >= span[0]) & (times < span[1])",
        "changed = (inside != before) & (times >= span[0]) & (times <= span[1])",
        "what leaves the answer at the end of a step leaves it once more in the next",
        ("tests/unit/operators/test_difference.py::test_the_log_is_what_changes",),
    ),
    Fault(
        "session-gap-edge",
        "operators/session.py",
        "times[1:] - times[:-1] > gap",
        "times[1:] - times[:-1] >= gap",
        "a row exactly a gap after another begins a session of its own",
        ("src/midstream/operators/session.py",),
    ),
    Fault(
        "band-upper-edge-excluded",
        "operators/candidates.py",
        'end = np.searchsorted(right, _shifted(left, math.floor(low)), "right")',
        'end = np.searchsorted(right, _shifted(left, math.floor(low)), "left")',
        "pairs at the lower bound of a band of integers are not found",
        ("tests/unit/operators/test_candidates.py::test_integer_bands_miss_nothing_and_bring_nothing_else",),
    ),
    Fault(
        "probe-range-edge-excluded",
        "operators/need.py",
        "if age > sizes[-1]:",
        "if age >= sizes[-1]:",
        "queries that share a join do not meet chunks as old as the widest of their windows",
        ("tests/unit/engine/test_sharing.py::test_rows_go_from_the_middle_of_what_is_held",),
    ),
    Fault(
        "eddy-forgets-rows-of-the-step",
        "operators/eddy/cacq.py",
        "            met |= stem.bit\n",
        "            met = stem.bit\n",
        "new rows of an eddy meet the new rows of only one source before theirs",
        ("tests/unit/operators/eddy/test_forms.py::test_the_answer_is_that_of_the_default_plan",),
    ),
    # --- state
    Fault(
        "purge-early",
        "state/combinations.py",
        "here = self.words[row] >= bounds[clock]",
        "here = self.words[row] > bounds[clock]",
        "a row is purged one unit before its window ends",
        ("tests/unit/state/test_combinations.py::test_purge_keeps_what_ends_at_the_bound",),
    ),
    Fault(
        "purge-late",
        "state/combinations.py",
        "here = self.words[row] >= bounds[clock]",
        "here = self.words[row] >= bounds[clock] - 1",
        "a row is kept one unit longer than anything may join it",
        ("tests/unit/state/test_combinations.py::test_purge_keeps_what_ends_at_the_bound",),
    ),
    Fault(
        "chunk-dropped-early",
        "state/sorted_run.py",
        "                if lifetimes[clock][1] < bounds[clock]:\n                    break",
        "                if lifetimes[clock][1] <= bounds[clock]:\n                    break",
        "a chunk that is remembered goes as a whole one unit before its last row dies",
        ("tests/unit/state/test_join_state.py::test_an_untouched_chunk_keeps_its_name",),
    ),
    Fault(
        "window-edge-excluded-few",
        "state/combinations.py",
        "    within = (now <= until)[0] if len(now) == 1 else _all(now <= until, 0)\n"
        "    if np.count_nonzero(within) == len(within):",
        "    within = (now < until)[0] if len(now) == 1 else _all(now < until, 0)\n"
        "    if np.count_nonzero(within) == len(within):",
        "a pair of age exactly the window is no result, where few pairs are looked at",
        (
            "tests/unit/state/test_combinations.py::test_few_candidates_of_several_blocks_are_paired_as_one_block_after_the_other",
        ),
    ),
    Fault(
        "window-edge-excluded-many",
        "state/combinations.py",
        "    within = (now <= until)[0] if len(now) == 1 else _all(now <= until, 0)\n"
        "    if np.count_nonzero(within) < len(within):",
        "    within = (now < until)[0] if len(now) == 1 else _all(now < until, 0)\n"
        "    if np.count_nonzero(within) < len(within):",
        "a pair of age exactly the window is no result, where many pairs are looked at",
        ("tests/unit/state/test_combinations.py::test_a_pair_is_within_its_windows_on_every_clock",),
    ),
    Fault(
        "null-key-joins",
        "state/keys.py",
        "valid = here if valid is None else valid & here",
        "valid = here if valid is None else valid | here",
        "a row whose second key is NULL meets others by its first",
        ("tests/unit/state/test_keys.py::test_keys_of_two_columns",),
    ),
    Fault(
        "dead-rows-of-a-large-chunk-match",
        "operators/match.py",
        "    mask = run.living(places)\n",
        "    mask = None\n",
        "a small step compares with the dead rows of a large chunk",
        ("tests/property/test_large_states.py::test_small_steps_beside_large_states",),
    ),
    Fault(
        "dead-counted-late",
        "state/combinations.py",
        "return self.before + int(self.soon.searchsorted(bound))",
        'return self.before + int(self.soon.searchsorted(bound, "right"))',
        "a row of a large chunk counts as dead one unit before it is",
        (
            "tests/unit/state/test_join_state.py::test_many_steps_against_a_list",
            "tests/property/test_large_states.py",
        ),
    ),
    Fault(
        "row-numbers-shift-at-a-cut",
        "state/base_state.py",
        "left = RowRun(first.first + dead, _without",
        "left = RowRun(first.first + dead + 1, _without",
        "rows are found one place beside theirs once dead rows were cut off the front",
        ("tests/unit/state/test_base_state.py::test_a_front_that_is_mostly_dead_is_cut_up_to_the_first_living_row",),
    ),
    Fault(
        "relived-rows-purged-twice",
        "runtime/lane.py",
        "JoinState(state.spec, runs, state.purged + dropped, state.left_out)",
        "JoinState(state.spec, runs, state.purged + 2 * dropped, state.left_out)",
        "the rows that go because windows or filters changed count as purged twice",
        (
            "tests/unit/engine/test_sharing.py::test_rows_that_go_with_the_query_of_the_widest_window_count_once_as_purged",
        ),
    ),
    Fault(
        "savepoint-chunks-swept",
        "state/sweep.py",
        "        keep.update(map(file_of, listed(manifest)))\n",
        "        keep = set(map(file_of, listed(manifest)))\n",
        "chunks go that only older kept manifests list",
        ("tests/unit/state/test_sweep.py::test_only_what_no_kept_manifest_lists_goes",),
    ),
    # --- runtime
    Fault(
        "watermark-of-the-fastest-stream",
        "step/unit_step.py",
        "before = min([lane.clock.before[stream] for stream in unit.streams])",
        "before = max([lane.clock.before[stream] for stream in unit.streams])",
        "states are purged by the stream that has come farthest",
        ("tests/unit/operators/test_joins.py::test_rows_that_the_watermark_has_passed_are_no_longer_compared",),
    ),
    Fault(
        "idle-stream-holds-the-others",
        "runtime/watermark.py",
        "for other in read - idle]",
        "for other in read]",
        "the watermark waits for a stream that is idle",
        ("tests/unit/runtime/test_watermark.py::test_an_idle_stream_is_lifted_to_the_others_watermark",),
    ),
    Fault(
        "null-group-spread-over-lanes",
        "runtime/lane_key.py",
        " if len(key) > 1 else SLOT_OF_NULL",
        "",
        "the group of NULLs is dealt to several lanes, each of which answers a part of it",
        ("tests/unit/step/test_rescale.py::test_a_group_of_nulls_stays_in_one_lane",),
    ),
    # --- step
    Fault(
        "row-at-the-watermark-is-late",
        "step/admission/admit.py",
        "(words < least) & ~far",
        "(words <= least) & ~far",
        "a row at the watermark is late, if others of its batch are",
        ("tests/unit/step/test_admit.py::test_a_row_at_the_watermark_is_in_time_and_one_before_it_late",),
    ),
    Fault(
        "late-rows-of-one-stream-only",
        "step/fold.py",
        "{name: rows.late for name, rows in lanes.admitted.items() if rows.late.num_rows}",
        "{name: rows.late for name, rows in lanes.admitted.items() if rows.late.num_rows > 1}",
        "a single late row of a step is counted, but not put out",
        ("tests/unit/engine/test_api.py::test_late_rows_and_dead_letters_by_stream",),
    ),
    Fault(
        "rescale-lists-held-results-in-every-lane",
        "step/rescale.py",
        "        elif lane:\n            continue\n",
        "",
        "results that a migration holds back are listed by every new lane",
        ("tests/unit/migration/test_parallel_track.py::test_what_is_held_back_outlives_a_rescale_and_a_restart",),
    ),
    Fault(
        "rescale-forgets-how-long-rows-live",
        "step/rescale.py",
        "max(ref.lifetimes[clock][1] for ref",
        "min(ref.lifetimes[clock][1] for ref",
        "rows that were adopted go with the first of the chunks they came from",
        ("tests/unit/step/test_rescale.py::test_chunk_lifetimes_cover_the_rows",),
    ),
    # --- language
    Fault(
        "between-excludes-its-upper-end",
        "language/evaluate.py",
        '_compare("le", value, high)',
        '_compare("lt", value, high)',
        "BETWEEN leaves out its upper end",
        ("tests/unit/language/test_evaluate_against_duckdb.py::test_a_range_holds_at_both_ends_and_of_no_null",),
    ),
    Fault(
        "null-compares-as-true",
        "language/evaluate.py",
        "return found if mask is None else np.asarray(found & mask)",
        "return found",
        "a comparison with NULL passes a filter",
        ("tests/unit/language/test_evaluate_against_duckdb.py::test_a_range_holds_at_both_ends_and_of_no_null",),
    ),
    Fault(
        "key-class-loses-the-chain",
        "plan/key_classes.py",
        "                found.update(dict.fromkeys(other, one))\n",
        "                found[predicate.right.text()] = one\n",
        "of A = B and C = D and B = C, D is not known to equal A",
        ("tests/unit/plan/test_key_classes.py::test_classes_grow_together_whatever_the_order",),
    ),
    Fault(
        "implied-window-one-unit-short",
        "language/implied_windows.py",
        'Window("range", max(ceil(age), 0))',
        'Window("range", max(ceil(age) - 1, 0))',
        "an interval join loses pairs at the edge of its interval",
        ("tests/unit/language/test_implied_windows.py::test_of_two_streams",),
    ),
    Fault(
        "sliding-window-one-unit-short",
        "language/implied_windows.py",
        "near.moved(1, size //",
        "near.moved(1, -1 + size //",
        "rows in one window of HOP whose ages differ most are not joined",
        ("tests/unit/language/test_implied_windows.py::test_columns_of_answers_lie_near_their_time",),
    ),
    # --- checkpoint, job and engine
    Fault(
        "command-taken-twice",
        "job/waiting_commands.py",
        "last_command=given[-1][0])",
        "last_command=given[-1][0] - 1)",
        "the last command of a step is taken again in the next",
        ("tests/unit/engine/test_pending_commands.py::test_a_command_of_the_log_is_taken_once",),
    ),
    Fault(
        "commit-before-the-sync",
        "engine/durable.py",
        "self.store.written(manifest), note()\n            self._unsynced.sync()\n",
        "self.store.written(manifest), note()\n",
        "a manifest is published whose chunks the loss of power may take",
        ("tests/unit/engine/test_loss_of_power.py::test_what_a_manifest_lists_is_synced_before_it_is_published",),
    ),
    Fault(
        "manifest-before-its-chunks",
        "engine/durable.py",
        "files, after, waiting = stage(), self.store.written(manifest), note()",
        "files, after, waiting = stage(), manifest, note()",
        "a manifest is published that lists chunks which are in memory alone",
        ("tests/unit/engine/test_loss_of_power.py::test_what_a_manifest_lists_is_synced_before_it_is_published",),
    ),
    Fault(
        "overtaken-driver-goes-on",
        "checkpoint/writer.py",
        "        self.manifests.add(manifest)\n        self.check()\n",
        "        self.manifests.add(manifest)\n",
        "a driver that was overtaken delivers a step that another one does again",
        ("tests/embedded/test_overtaken.py::test_who_is_overtaken_while_it_delivers_tidies_nothing",),
    ),
    Fault(
        "held-checkpoint-is-taken",
        "checkpoint/epochs.py",
        "if newest is not None and not (take_over or newest.is_free):",
        "if newest is not None and not (take_over or newest.is_free) and newest.holder.is_here:",
        "a second machine or process takes a checkpoint that another one is writing",
        ("tests/embedded/test_checkpoint.py::test_one_of_another_process_holds_it",),
    ),
    Fault(
        "base-of-a-difference-removed",
        "checkpoint/manifest_log.py",
        "            needed = self._needed([*kept, entry])\n",
        "            needed = {one.name for one in [*kept, entry]}\n",
        "a manifest's file goes that kept ones differ from",
        ("tests/unit/checkpoint/test_manifest_differences.py::test_every_kept_step_is_read_as_it_was",),
    ),
    Fault(
        "chunk-listed-twice",
        "checkpoint/difference.py",
        "    return list(old[begin:end])",
        "    return list(old[begin : end + 1])",
        "a manifest that is read from what differs lists a chunk twice",
        ("tests/unit/checkpoint/test_manifest_differences.py::test_every_kept_step_is_read_as_it_was",),
    ),
    # --- sinks
    Fault(
        "delivered-again-after-a-restart",
        "sinks/contract.py",
        "        if staged.is_there:\n            self.write(staged)\n",
        "        self.write(staged)\n",
        "a sink is given the results of a step again though it has removed them as done",
        ("tests/sinks/test_function_sinks.py::test_a_function_of_arrow_tables_keeps_the_contract",),
    ),
    Fault(
        "table-takes-a-step-twice",
        "sinks/contract.py",
        '        if newest in (self.stamp, Stamp("", "", self.step)):\n            return False\n',
        '        if newest in (self.stamp, Stamp("", "", self.step)):\n            return True\n',
        "a table appends a step that it has",
        ("tests/sinks/test_lake_tables.py::test_it_keeps_the_contract",),
    ),
    # --- spark
    Fault(
        "spark-forgets-late-rows-of-a-lane",
        "spark/task.py",
        'self.staged.put(output, f"rows{len(self.staged)}", table)',
        'self.staged.put(output, "rows", table)',
        "late rows of a second lane of a task overwrite those of the first",
        ("tests/spark/test_outputs.py::test_late_rows_and_dead_letters",),
    ),
    Fault(
        "spark-takes-the-last-task-s-counts",
        "spark/blocks.py",
        "found[name] = found[name] + seen",
        "found[name] = seen",
        "of the rows that several tasks saw, those of the last one count",
        ("tests/spark/test_blocks.py::test_what_all_tasks_saw_is_added_up",),
    ),
    Fault(
        "spark-block-goes-by-its-lane-alone",
        "spark/blocks.py",
        "kept, first + self._lanes(group, stream, kept), first)",
        "kept, self._lanes(group, stream, kept), 0)",
        "lanes of a second group do not follow those of the first in their turns over partitions",
        ("tests/spark/test_blocks.py::test_every_row_comes_to_its_lane_once",),
    ),
    # --- optimizer
    Fault(
        "estimate-counts-one-side",
        "optimizer/estimate.py",
        "probes = left.rate * right.rows + right.rate * left.rows",
        "probes = left.rate * right.rows",
        "a join's work is estimated by the rows of one side",
        ("tests/unit/optimizer/test_estimate.py::test_one_join_is_equations_1_2_and_5",),
    ),
    Fault(
        "bar-lowered-by-a-loss",
        "optimizer/policies/adaptive.py",
        "factor = RAISED if switch.balance < 0 else 1 / RAISED",
        "factor = 1 / RAISED if switch.balance < 0 else RAISED",
        "a switch that did not pay makes the next one easier",
        (
            "tests/optimizer/test_adaptive.py::test_where_switches_have_not_paid_more_reviews_must_agree_however_cheap_the_next_one_is",
        ),
    ),
)
