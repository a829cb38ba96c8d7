"""What happened, as a sentence for a reader: every event of a job in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from midstream.model.events import (
    ChainChanged,
    ChunksFetched,
    CommandRefused,
    CrossJoinBegun,
    Event,
    LanesProposalClosed,
    LanesRescaled,
    LanesReviewed,
    MigrationBegun,
    MigrationEnded,
    MigrationProgressed,
    OptimizerSet,
    PlanPinned,
    PlanReviewed,
    ProposalClosed,
    QueryAdded,
    QueryChanged,
    QueryDropped,
    QuerySpread,
    ResultsRejected,
    ReviewFailed,
    RowsLate,
    RowsRejected,
    SharingChanged,
    StateRebuilt,
    StepDelayed,
    StepDone,
    StopRequested,
    StreamAdded,
    StreamDropped,
    TableDropped,
    TableSet,
    TimesDoubtful,
)
from midstream.model.words import counted, coverage_text, size_text, span_text, time_text


def event_sentence(event: Event) -> str:
    """Describe an event without its step, in words: times as dates, lengths of time in units, queries by name.

    >>> event_sentence(MigrationBegun(7, "q", "gms", "((A B) C)", "(A (B C))"))
    'query q begins to move from ((A B) C) to (A (B C)) by gms'
    >>> event_sentence(RowsLate(7, "A", 2, 1357023600000000))
    'stream A: 2 rows came after the watermark of 2013-01-01 07:00:00 and went to the late output'
    """
    return _of_rows(event) or _of_queries(event) or _of_decisions(event) or event.kind.replace("_", " ")


def event_lines(events: Sequence[Event]) -> list[str]:
    """Describe events with their steps, a line each.

    States that were computed again in one step, which a change of lanes does with all of them, have one line for all.

    >>> rebuilt = [StateRebuilt(4, lane, "A.rows", rows=5, comparisons=0) for lane in ("g.0", "g.1")]
    >>> event_lines([LanesRescaled(4, 1, 2), *rebuilt])
    ['step 4: 2 lanes, before: 1', 'step 4: 2 states (10 rows) were computed again from the rows of their streams']
    """
    lines = []
    for (step, rebuilt), group in groupby(events, lambda event: (event.step, isinstance(event, StateRebuilt))):
        alike = list(group)
        sentences = list(map(event_sentence, alike))
        if rebuilt and len(alike) > 1:
            rows = counted(sum(event.rows for event in alike if isinstance(event, StateRebuilt)), "row")
            sentences = [f"{len(alike):,} states ({rows}) were computed again from the rows of their streams"]
        lines += [f"step {step:,}: {sentence}" for sentence in sentences]
    return lines


def _of_rows(event: Event) -> str:
    match event:
        case StepDone(rows_in=given, rows_out=found, comparisons=compared, state_rows=held):
            rows, results = counted(sum(given.values()), "row"), counted(sum(found.values()), "result")
            return f"{rows} in, {results} out, {counted(compared, 'comparison')}, {counted(held, 'row')} in state"
        case StepDelayed(reason=reason, attempts=attempts):
            return f"could not be done and was tried {counted(attempts, 'time')}: {reason}"
        case ChunksFetched(hits=hits, misses=misses, cache_bytes=size):
            return f"{counted(misses, 'chunk')} fetched, {hits:,} found in caches of up to {size_text(size)}"
        case RowsLate(stream=stream, rows=rows, watermark=mark):
            came = f"came after the watermark of {time_text(mark)} and went to the late output"
            return f"stream {stream}: {counted(rows, 'row')} {came}"
        case TimesDoubtful(stream=stream, reason=reason):
            return f"the times of stream {stream} may be wrong: {reason}"
        case RowsRejected(stream=stream, rows=rows):
            return f"stream {stream}: {counted(rows, 'row')} could not be read and went to the dead letters"
        case ResultsRejected(query=query, rows=rows):
            return f"query {query}: {counted(rows, 'dead letter')}, because something in it cannot be evaluated"
        case StateRebuilt(lane=lane, state=state, rows=rows):
            return (
                f"state {state} of lane {lane} ({counted(rows, 'row')}) was computed again from the rows of its streams"
            )
    return ""


def _of_queries(event: Event) -> str:
    match event:
        case QueryAdded(query=query, plan=plan, sees=sees, from_step=seen, exact_from=exact):
            return f"query {query} starts with plan {plan} and sees {coverage_text(sees, seen, exact)}"
        case QueryChanged(query=query, sees=sees, from_step=seen, exact_from=exact):
            return f"query {query} has another text and sees {coverage_text(sees, seen, exact)}"
        case QueryDropped(query=query):
            return f"query {query} is dropped"
        case StreamAdded(stream=stream):
            return f"stream {stream} is read"
        case StreamDropped(stream=stream):
            return f"stream {stream} is no longer read"
        case TableDropped(table=table):
            return f"table {table} is dropped"
        case TableSet(table=table, version=version, rows=rows):
            return f"table {table} has version {version}, of {counted(rows, 'row')}"
        case CrossJoinBegun(query=query, groups=groups):
            tied = " with every row of ".join(" and ".join(group) for group in groups)
            return f"query {query} joins every row of {tied}: no condition ties them"
        case QuerySpread(query=query, old=old, new=new, nodes=nodes):
            over = f" over {counted(nodes, 'node')}" if nodes else ""
            return f"query {query} is spread by {new}{over}, before: {old}"
        case MigrationBegun(query=query, strategy=strategy, old=old, new=new):
            return f"query {query} begins to move from {old} to {new} by {strategy}"
        case MigrationProgressed(query=query, strategy=strategy, phase=phase):
            return f"query {query} is on its way by {strategy}: {phase}"
        case MigrationEnded(query=query, strategy=strategy, plan=plan, comparisons=compared):
            return f"query {query} runs by {plan}; {strategy} cost {counted(compared, 'comparison')}"
        case ChainChanged(chain=chain, cuts=cuts, queries=queries, why=why):
            ages = ", ".join(map(span_text, cuts)) or "nowhere"
            return f"chain {chain} of {counted(queries, 'query')} is cut at ages {ages}: {why}"
        case SharingChanged(old=old, new=new):
            return f"queries share by {new}, before: {old}"
        case LanesRescaled(old=before, new=after):
            return f"{counted(after, 'lane')}, before: {before}"
        case CommandRefused(command=command, reason=reason):
            name = command.get("query") or ""
            return f"command {command.get('command', '')}{f' of query {name}' if name else ''} refused: {reason}"
        case StopRequested():
            return "the job was asked to end"
    return ""


def _of_decisions(event: Event) -> str:
    match event:
        case PlanReviewed(query=query, decision="stay", plan=plan, reason=reason):
            return f"query {query} stays with {plan}: {reason}"
        case PlanReviewed(query=query, decision=decision, plan=plan, chosen=chosen, reason=reason, answer=answer):
            return f"query {query}: {_verb(decision)} {chosen} instead of {plan}: {reason}{_reply(answer)}"
        case LanesReviewed(decision="stay", lanes=lanes, reason=reason):
            return f"{counted(lanes, 'lane')} stay: {reason}"
        case LanesReviewed(decision=decision, lanes=lanes, chosen=chosen, reason=reason, answer=answer):
            return f"{_verb(decision)} {counted(chosen, 'lane')} instead of {lanes}: {reason}{_reply(answer)}"
        case LanesProposalClosed(lanes=lanes, state=state, reason=reason):
            return f"the proposal of {counted(lanes, 'lane')} was {state}{_why(reason)}"
        case ProposalClosed(query=query, plan=plan, state=state, reason=reason):
            return f"query {query}: the proposal of {plan} was {state}{_why(reason)}"
        case ReviewFailed(query=query, reason=reason):
            return f"query {query} could not be reviewed: {reason}"
        case OptimizerSet(query=query, mode=mode, policy=policy):
            whom = f"query {query}" if query else "queries without settings of their own"
            return f"the optimizer is set to {mode}, by {policy}, for {whom}"
        case PlanPinned(query=query, plan=plan, pinned=pinned):
            return f"query {query} is pinned to {plan}" if pinned else f"query {query} is pinned no longer"
    return ""


def _verb(decision: str) -> str:
    return {"suggest": "suggested:", "ask": "waits for an answer:", "switch": "switches to"}.get(decision, decision)


def _reply(answer: str) -> str:
    return f"; {answer}" if answer else ""


def _why(reason: str) -> str:
    return f": {reason}" if reason else ""
