"""What a run must have put out: by the oracle, over the rows that each query is said to see, and it must be said right.

A result is due in the step in which its last component arrives. Every query counts the rows that arrive since it began.
One that sees "all" counts all rows of the whole input too; one that sees what is "new" those that arrived from a step
on; one that sees from a time on those of them that are not older.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tests.oracle.answer import Answer, answer, width
from tests.oracle.arrival import Arrivals, Lifetime, arrive
from tests.oracle.compare import Row, assert_ordered, difference, rows
from tests.oracle.spec import QuerySpec, StreamSpec
from tests.sharing.case import Case, Move, Reshare
from tests.sharing.drive import Run, Segment
from tests.sharing.family import Want


@dataclass(frozen=True)
class Sees:
    """What a query is said to see of the rows that arrived before it."""

    rows: str | int
    from_step: int = 0

    def __str__(self) -> str:
        return f"{self.rows} since step {self.from_step}"


ALL = Sees("all")

NEVER = 2**62


@dataclass(frozen=True)
class Due:
    """The results that are due from a step on: the answer's rows, each with its time and step."""

    answer: Answer
    places: list[int]

    def by_step(self, step: int) -> pa.Table:
        """Those of one step."""
        places = [place for place in self.places if self.answer.steps[place] == step]
        return self.answer.table.take(pa.array(places, pa.int64()))

    def since(self, time: int | None) -> Counter[tuple[int, Row]]:
        """Those of a time on, each with its step."""
        found = rows(self.answer.table)
        times, steps = self.answer.times, self.answer.steps
        return Counter((steps[p], found[p]) for p in self.places if time is None or times[p] >= time)


class Judge:
    """The oracle over one case's rows."""

    def __init__(self, case: Case, found: Run) -> None:
        self.case, self.found = case, found
        lives = [Lifetime(s.query, s.asked.spec, s.begin, s.end) for s in found.segments]
        self.arrivals = arrive(case.streams, case.steps, lives)
        self.kinds: Counter[str] = Counter()
        self._due: dict[tuple[int, Sees], Due] = {}
        self.alike = True
        """Whether members of one join must share; where a source has too many filters, one more runs by itself."""

    def check(self) -> Counter[str]:
        """Fail unless all is as promised; tells how often what was seen."""
        for segment in self.found.segments:
            label = f"{segment.query} from step {segment.begin}"
            sees, exact_from = said(segment)
            assert sees.from_step <= segment.begin, f"{label}: it does not see what arrives, but from {sees}"
            self._check_answer(segment, sees, label)
            self._check_exact(segment, sees, exact_from, label)
            self._check_sees(segment, sees, exact_from, label)
            self._check_keeps(segment, sees, label)
            kind = sees.rows if isinstance(sees.rows, str) else "some"
            self.kinds[f"sees {kind}"] += 1
            if segment.begin > 0 and self._heard(segment):
                self.kinds[f"{'added' if segment.added else 'changed'} amid rows, sees {kind}"] += 1
        return self.kinds

    def due(self, segment: Segment, sees: Sees) -> Due:
        """What a segment must put out if it sees this."""
        asked = id(segment), sees
        if asked not in self._due:
            spec = segment.asked.spec
            self._due[asked] = due(self.case.streams, self.arrivals, spec, segment.begin, segment.end, sees)
        return self._due[asked]

    def _check_answer(self, segment: Segment, sees: Sees, label: str) -> None:
        wanted = self.due(segment, sees)
        for number, table in enumerate(segment.tables):
            expected = wanted.by_step(segment.begin + number)
            if table.column_names == expected.column_names and Counter(rows(table)) == Counter(rows(expected)):
                continue
            problem = difference(table, expected, wanted.answer.approximate)
            assert not problem, f"{label} (sees {sees}) step {segment.begin + number}: {problem}"
        assert_ordered(segment.tables, throughout=self.case.straight, label=label)

    def _check_exact(self, segment: Segment, sees: Sees, exact_from: int | None, label: str) -> None:
        """From then on it is as if the query had run for ever."""
        if sees.rows == "all" or segment.asked.want is None:
            assert exact_from is None or segment.asked.want is None, f"{label}: sees all, exact from {exact_from}?"
            return
        if exact_from is None and any(source.rows is not None for source in segment.asked.spec.sources):
            return  # Windows that count rows let go of them at no event time.
        mine, whole = self.due(segment, sees), self.due(segment, ALL)
        missing = whole.since(exact_from) - mine.since(exact_from)
        assert not missing, f"{label}: sees {sees} is not exact from {exact_from}: {dict(missing)}"
        ranged = all(s.rows is None for s in segment.asked.spec.sources)
        if isinstance(sees.rows, int) and not sees.from_step and exact_from is not None and ranged:
            widest = max(size for _, size in segment.asked.want.windows.values())
            assert exact_from <= sees.rows + widest, f"{label}: sees {sees}, exact from {exact_from} only"
        latest = self._latest(segment)
        if latest is not None and exact_from is not None:
            assert exact_from <= latest, f"{label}: exact from {exact_from} only, though from {latest} nothing is old"

    def _in_other_words(self, segment: Segment) -> Segment | None:
        """The segment that ended as this one began, if its text differs at most in the order of its conditions."""

        def meaning(spec: QuerySpec) -> QuerySpec:
            return replace(spec, where=tuple(sorted(spec.where, key=lambda one: one.text)))

        for other in () if segment.added else self.found.segments:
            if (other.query, other.end) == (segment.query, segment.begin):
                return other if meaning(other.asked.spec) == meaning(segment.asked.spec) else None
        return None

    def _check_sees(self, segment: Segment, sees: Sees, exact_from: int | None, label: str) -> None:
        """What is easy to tell: who must see all, and who only what is new."""
        heard = self._heard(segment)
        if not heard:
            assert exact_from is None, f"{label}: before the first row, yet exact from {exact_from}"
            return
        if segment.asked.want is None:
            several = len(segment.asked.spec.all_sources) > 1
            event: Any = segment.event
            assert event.sees == "new" or not several, f"{label}: no member, yet sees {event.sees}"
            return
        reshared = any(isinstance(action, Reshare) for action in self.case.actions)
        alone = self.case.sharing == "off" and not reshared
        if alone and (before := self._in_other_words(segment)):
            assert sees == said(before)[0], f"{label}: sees {sees}, though the text before it means the same"
            return
        if not segment.history or alone:
            assert sees == Sees("new", segment.begin), f"{label}: sees {sees}, and should see what is new alone"
            return
        for other in self.found.segments if self.alike else ():
            if not self._stands_by(other, segment):
                continue
            assert other.asked.want is not None
            far = self._reach(other.asked.want, segment)
            if far is None or segment.asked.want.within(other.asked.want):
                assert sees.rows == "all", (
                    f"{label}: sees {sees}, and {other.query} of step {other.begin} is wider and whole"
                )
                self.kinds["covered"] += 1
            elif far < NEVER:
                enough = sees.rows == "all" or (isinstance(sees.rows, int) and sees.rows <= far and not sees.from_step)
                assert enough, f"{label}: sees {sees}, and {other.query} of step {other.begin} holds all from {far}"
                self.kinds["covered in part"] += 1

    def _check_keeps(self, segment: Segment, sees: Sees, label: str) -> None:
        """A query that is changed and reads no more than before goes on seeing what it has seen."""
        for other in self.found.segments:
            wants = other.asked.want is not None and segment.asked.want is not None
            if segment.added or other.query != segment.query or other.end != segment.begin or not wants:
                continue
            assert other.asked.want is not None and segment.asked.want is not None
            if not segment.asked.want.within(other.asked.want):
                continue
            before = said(other)[0]
            if before.rows == "new" and before.from_step == other.begin and not other.history:
                continue
            if any(isinstance(action, Reshare) for action in self.case.actions):
                continue
            lost = self._due_of(segment, before, other.begin).since(None) - self.due(segment, sees).since(None)
            assert not lost, f"{label}: sees {sees}, and before it was changed {before}: lost {len(lost)}"
            self.kinds["changed, and sees no less"] += 1

    def _due_of(self, segment: Segment, sees: Sees, entered: int) -> Due:
        spec = segment.asked.spec
        return due(self.case.streams, self.arrivals, spec, segment.begin, segment.end, sees, entered)

    def _reach(self, want: Want, segment: Segment) -> int | None:
        """The time from which a member that has seen everything holds all rows; None is from the beginning.

        Where a window counts rows there is no such time.
        """
        watermark = self.arrivals.query_watermark(segment.asked.spec.streams, segment.begin - 1)
        if any(kind == "rows" for kind, _ in want.windows.values()):
            return NEVER
        if watermark is None:
            return None
        return max(watermark - size for _, size in want.windows.values())

    def _stands_by(self, other: Segment, segment: Segment) -> bool:
        """Whether another member with no filter more ran before and runs on, and has itself seen everything."""
        if other is segment or other.begin >= segment.begin or other.end < segment.begin:
            return False
        runs_on = other.end > segment.begin or (other.query == segment.query and not segment.added)
        if not runs_on or other.asked.want is None or segment.asked.want is None:
            return False
        if any(isinstance(action, Move | Reshare) for action in self.case.actions):
            return False  # One of the two may be elsewhere by now.
        whole = said(other)[0].rows == "all" or not self._heard(other)
        return whole and segment.asked.want.passes(other.asked.want)

    def _heard(self, segment: Segment) -> bool:
        """Whether any row of its streams had been admitted before."""
        tables = (self.arrivals.admitted[name] for name in segment.asked.spec.streams)
        return any((pc.min(table["__step"]).as_py() or 0) < segment.begin for table in tables if table.num_rows)

    def _latest(self, segment: Segment) -> int | None:
        """The moment from which no result has a component from before the segment; None if rows are counted."""
        spec = segment.asked.spec
        if any(source.rows is not None for source in spec.sources):
            return None
        times = []
        for source in spec.sources:
            table = self.arrivals.admitted[source.stream]
            before = table.filter(pc.less(table["__step"], segment.begin))
            if before.num_rows:
                times.append(pc.max(before["__ts"]).as_py() + (width(Lifetime("", spec), source) or 0) + 1)
        return max(times, default=None)


def said(segment: Segment) -> tuple[Sees, int | None]:
    """What the event says that a segment sees, and from when on it is exact."""
    event: Any = segment.event
    assert event is not None, f"{segment.query}: nobody said that it began with step {segment.begin}"
    assert event.query == segment.query
    if segment.asked.want is None:
        return Sees("new", segment.begin), None
    return Sees(event.sees, event.from_step), event.exact_from


def due(
    streams: tuple[StreamSpec, ...],
    arrivals: Arrivals,
    spec: QuerySpec,
    begin: int,
    end: int,
    sees: Sees,
    entered: int | None = None,
) -> Due:
    """What a query that runs from `begin` up to `end`, and sees all since `entered`, must put out if it sees this."""
    if isinstance(sees.rows, int):
        seen = {}
        for name, table in arrivals.admitted.items():
            older = pc.greater_equal(table["__ts"], sees.rows)
            older = pc.and_(older, pc.greater_equal(table["__step"], sees.from_step))
            arriving = pc.greater_equal(table["__step"], begin if entered is None else entered)
            seen[name] = table.filter(pc.or_(older, arriving))
        arrivals = replace(arrivals, admitted=seen)
    since = sees.from_step if sees.rows == "new" else 0
    found = answer(streams, arrivals, Lifetime("", spec, since, end))
    return Due(found, [place for place, step in enumerate(found.steps) if step >= begin])
