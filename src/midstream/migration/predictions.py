"""What each way of migrating costs, from live figures: the papers' models over any plan.

A strategy's `predict` calls the function of its kind with its options. Where the papers have one rate and one window,
these take each source's own; times end a step later than in the papers, because a step is done as a whole.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, inf

from midstream.optimizer.prediction import Prediction, Situation
from midstream.optimizer.task_figures import pieces, share_probed


def rebuild_all(situation: Situation) -> Prediction:
    """Estimate making all missing states at once: moving state (Zhu §5.1, Equations 1 to 3), eager STAIRs.

    Nothing is missing where the new plan keeps base rows only (M-Join, CACQ), and states of a plan that is still being
    left are there.
    """
    return _at_once(situation, sum(j.pairs for piece in pieces(situation) for j in piece.unmade))


def replay_all(situation: Situation) -> Prediction:
    """Estimate feeding one window's old rows to the new plan at once: GMS (HybMig §4.4: Duration_GMS = CPU_GMS)."""
    return _at_once(situation, sum(j.pairs for piece in pieces(situation) for j in piece.new))


def both_plans(situation: Situation, *, hold_new: bool = False, zhu_purge: bool = False) -> Prediction:
    """Estimate running the old plan whole next to an empty new one: parallel track (Zhu §5.2, Equations 4 and 5).

    The old plan's comparisons are what would not be made otherwise; its root makes no all-new results, which are a
    share (t/W)^(n-1) of all at time t. With `hold_new` the new plan's first results wait for the end.
    """
    if hold_new:
        situation = replace(situation, options={**situation.options, "decompose": False})
    work = rate = memory = lasts = 0.0
    for piece in pieces(situation):
        seconds, number = piece.window * (2 if zhu_purge and piece.height > 1 else 1), len(piece.sources)
        running, root = sum(j.running for j in piece.old), piece.old[-1].running if piece.old[-1].kept else 0.0
        running += sum(j.running for j in piece.left)
        work += (running - root) * (seconds + situation.statistics.step) + root * piece.window * (number - 1) / number
        rate, lasts = rate + running, max(lasts, seconds)
        memory += piece.unmatched + piece.inputs
        if hold_new:
            memory += piece.new[-1].output.rate * seconds / (number + 1)
    return _lasting(situation, work, rate, memory, lasts, held=lasts if hold_new else 0.0)


def beside(situation: Situation, budget: float | None = None) -> Prediction | None:
    """Estimate feeding a new plan next to the old one, its output thrown away: GPT, with a `budget` GHM (HybMig §4.4).

    Without a budget it is fed the new rows only, and its states fill up in one window. With one, in comparisons a step,
    it is fed the old rows first and ends when it has caught up.

    Returns: None where the budget is less than what the new plan needs for the rows that come, as it never catches up.
    """
    step, found = situation.statistics.step, pieces(situation)
    work = rate = lasts = 0.0
    for piece in found:
        replay, running, seconds = sum(j.pairs for j in piece.new), sum(j.running for j in piece.new), piece.window
        if budget is None:
            work, rate = work + replay + running * (piece.window - piece.filling + step), rate + running
        else:
            seconds = _caught_up(piece.window, replay, running, budget / step)
            if seconds == inf:
                return None
            work, rate = work + replay + running * seconds, rate + budget / step
        lasts = max(lasts, seconds)
    memory = sum(piece.unmatched + piece.inputs for piece in found)
    return _lasting(situation, work, rate, memory, lasts)


def shifting(situation: Situation, background: float = 0.0) -> Prediction:
    """Estimate an old plan that serves only what the new one lacks: HybMig (§3.2 to 3.5).

    `background`, in comparisons a step, completes the missing states meanwhile.
    """
    step, spare = situation.statistics.step, background / situation.statistics.step
    found = [piece for piece in pieces(situation) if piece.missing]
    missing = sum(j.pairs for piece in found for j in piece.missing)
    finish = missing / spare if spare else inf
    work = rate = lasts = 0.0
    for piece in found:
        seconds = min(piece.entry_window, finish)
        work += piece.left_to_old(seconds)
        rate += piece.left_to_old(step) / step
        lasts = max(lasts, seconds)
    memory = sum(piece.unmatched for piece in found)
    return _lasting(situation, work + min(missing, spare * lasts), rate + spare, memory, lasts)


def on_demand(situation: Situation, background: float = 0.0) -> Prediction:
    """Estimate completing a key of a missing state when a probe needs it: JISC (§4, §5.2), STAIRs on demand.

    A key is probed by the rows of the other side of the join above, as often as the index lets one of them through;
    what it costs then is its share of the rebuild, less what was purged before the first probe.
    """
    step, spare = situation.statistics.step, background / situation.statistics.step
    found = pieces(situation)
    missing = sum(j.pairs for piece in found for j in piece.unmade)
    work = rate = lasts = 0.0
    for piece in found:
        for joining in piece.unmade:
            rate_of_key = piece.probed(joining) + (spare / missing if missing else 0.0)
            work += joining.pairs * share_probed(rate_of_key, piece.window, len(joining.output.sources))
            rate += joining.pairs * (1 - exp(-rate_of_key * step)) / step
            finish = missing / spare if spare else inf
            lasts = max(lasts, min(piece.window, finish, piece.all_probed(joining)))
    return _lasting(situation, work, rate, 0.0, lasts)


def _caught_up(window: float, replay: float, running: float, spare: float) -> float:
    # Duration_GHM (HybMig §4.4), where the budget is what the old plan leaves.
    if not window:
        return 0.0
    left = spare - running
    return replay / left if left > 0 else inf


def _at_once(situation: Situation, work: float) -> Prediction:
    # Results wait until all of the work is done.
    silence = work / situation.statistics.speed
    return Prediction(silence=silence, work=work, duration=silence)


def _lasting(
    situation: Situation, work: float, rate: float, memory: float, lasts: float, held: float = 0.0
) -> Prediction:
    # Results wait for the first step's part of the work, or as long as they are held back.
    step = situation.statistics.step
    silence = max(held, min(rate * step, work) / situation.statistics.speed)
    return Prediction(silence, work, memory, lasts + step if lasts else 0.0)
