"""The embedded host: a push a step, one after the other."""

from __future__ import annotations

import gc
import time
from itertools import pairwise

import midstream as ms
from benchmarks.optimizer.contestants import Contestant
from benchmarks.optimizer.course import LEAD, Course
from benchmarks.optimizer.review_time import review_time
from benchmarks.optimizer.trace import Answers, Trace, reviews_in, switches_in, work_of
from midstream.model.events import Event


def run(course: Course, contestant: Contestant) -> Trace:
    """Run a contestant."""
    gc.collect()
    engine, waiting, answers = begun(course, contestant), dict(contestant.changes), Answers()
    done, seconds, events = [0.0], list[float](), list[Event]()
    busy, step = 0.0, 0
    with review_time() as reviewing:
        for step, tables in enumerate(course.steps()):
            if step in waiting:
                engine.migrate(LEAD, waiting[step], strategy="auto", together=course.scenario.queries > 1)
            at, processor = time.perf_counter(), time.process_time()
            found = engine.push(tables)
            seconds.append(time.perf_counter() - at)
            busy += time.process_time() - processor
            done.append(work_of(engine.manifest.totals))
            answers.keep(found.values())
            events += [event for event in engine.events if event.step == step]
    work = tuple(after - before for before, after in pairwise(done))
    plan = engine.manifest.queries[LEAD].plan
    return Trace(
        work, tuple(seconds), tuple(answers.counts), busy, reviewing.seconds, reviews_in(events), switches_in(events),
        plan, answers.mark, engine.manifest.totals.comparisons,
    )  # fmt: skip


def begun(course: Course, contestant: Contestant) -> ms.Engine:
    """An engine before the first step."""
    engine = course.engine(contestant.plan)
    if contestant.kind == "policy":
        engine.optimize(policy=contestant.name, mode="auto", review=round(course.load.review * 1e6))
    return engine
