"""A case together with everything that is done to it; one that fails is made smaller, and told as a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from midstream.model.events import StateRebuilt
from tests.conformance.expected import Expected
from tests.oracle.answer import Answer
from tests.property.drive import Action, Case, Migrate, Rescale, Restart, Run, run, script


@dataclass(frozen=True)
class Course:
    """Queries with their first plans, and actions."""

    case: Case
    plans: Mapping[str, str]
    actions: tuple[Action, ...]
    lanes: int = 1
    sharing: str = "auto"

    def run(self) -> Run:
        """Run it on a new engine."""
        return run(self.case, self.plans, self.actions, lanes=self.lanes, sharing=self.sharing)

    def check(self, expected: Mapping[str, Expected]) -> Run:
        """Run it; fail unless each query's output is what is expected, in the step and the order that is promised."""
        found = self.run()
        straight = self.case.in_order and self.lanes == 1 and not any(isinstance(a, Rescale) for a in self.actions)
        for name, output in found.outputs.items():
            if self.holds(name):
                complete = name not in found.engine.manifest.queries or found.engine.migration(name) is None
                expected[name].check_total(output, complete=complete, label=name)
            else:
                expected[name].check(output, in_order=straight, label=name)
        # A migration that leaves a state behind is made good in the next step, which nobody should rely on.
        begun = {action.step for action in self.actions}
        rebuilt = [e for e in found.engine.events if isinstance(e, StateRebuilt) and e.step not in begun]
        calm = all(isinstance(action, Migrate) for action in self.actions)
        assert not (calm and rebuilt), f"states were lost: {rebuilt}"
        return found

    def holds(self, query: str) -> bool:
        """Whether results may come in later steps than they are due: Zhu's timestamp order (Lemma 2.1)."""
        moves = (action for action in self.actions if isinstance(action, Migrate) and action.query == query)
        return any(move.options.get("hold_new") for move in moves)

    def fails(self) -> str:
        """What goes wrong, by an oracle asked anew; empty if nothing does."""
        try:
            answers: dict[str, Answer] = self.case.expected()
            self.check({name: Expected(answer, len(self.case.steps)) for name, answer in answers.items()})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def reduced(self) -> Course:
        """A course that fails as well, with less in it."""
        smaller, again = self, True
        while again:
            again = False
            for candidate in smaller.lesser():
                if candidate.fails():
                    smaller, again = candidate, True
                    break
        return smaller

    def lesser(self) -> Iterator[Course]:
        """Courses with a little less: a query, an action, an option, rows."""
        for gone in self.case.queries:
            left = tuple(query for query in self.case.queries if query is not gone)
            if left:
                mine = tuple(a for a in self.actions if isinstance(a, Restart | Rescale) or a.query != gone.name)
                yield replace(self, case=replace(self.case, queries=left), actions=mine)
        for at, action in enumerate(self.actions):
            before, after = self.actions[:at], self.actions[at + 1 :]
            yield replace(self, actions=(*before, *after))
            if isinstance(action, Migrate):
                for option in action.options:
                    options = {name: value for name, value in action.options.items() if name != option}
                    yield replace(self, actions=(*before, replace(action, options=options), *after))
        if self.lanes > 1:
            yield replace(self, lanes=1)
        yield from (replace(self, case=case) for case in _fewer_rows(self.case))

    def told(self) -> str:
        """What goes wrong, and a program that prints what each step puts out."""
        program = script(self.case, self.plans, self.actions, lanes=self.lanes, sharing=self.sharing)
        return f"{program}\n# {'# '.join(self.fails().splitlines(keepends=True))}"


def _fewer_rows(case: Case) -> Iterator[Case]:
    def put(step: int, stream: str, keep: Callable[[int], bool]) -> Case:
        table = case.steps[step][stream]
        left = table.filter(pa.array([keep(n) for n in range(table.num_rows)], pa.bool_()))
        steps = [dict(s) for s in case.steps]
        steps[step][stream] = left
        return replace(case, steps=tuple(steps))

    for step, tables in enumerate(case.steps):
        for stream, table in tables.items():
            half = table.num_rows // 2
            if table.num_rows > 2:
                yield put(step, stream, lambda n: False)
                yield put(step, stream, lambda n, half=half: n < half)  # type: ignore[misc]
                yield put(step, stream, lambda n, half=half: n >= half)  # type: ignore[misc]
            else:
                for gone in range(table.num_rows):
                    yield put(step, stream, lambda n, gone=gone: n != gone)  # type: ignore[misc]
