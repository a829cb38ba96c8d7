"""What the dashboard answers, as JSON values: which checkpoints there are, how one stands, what a view shows, commands.

In: checkpoints and what a request asks for. Out: JSON values; there is no HTTP here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from inspect import getdoc
from typing import Any
from zlib import crc32

from midstream.checkpoint.reader import Checkpoint, outcome_of
from midstream.checkpoint.time_log import TIMES_KEPT
from midstream.commands.base import StepCommand, command_of, offered
from midstream.dashboard.job_reading import ANSWERS_KEPT, JobReading, JobReadings
from midstream.dashboard.trial import answer, moved, planned
from midstream.dashboard.view import nothing_else
from midstream.dashboard.views import views
from midstream.model.codec import encode
from midstream.model.command import COMMANDS, Input
from midstream.model.discovery import load_modules
from midstream.model.errors import CheckpointError, MidstreamError, QueryError, fault_located
from midstream.model.step_time import time_summary

JsonObject = dict[str, Any]

CLOCKS = TIMES_KEPT
"""Of so many of the newest steps the page knows the clock time: of all that the checkpoint has."""


class Api:
    """The answers over some checkpoints, which are named by their place in the list."""

    def __init__(self, checkpoints: Sequence[Checkpoint], *, control: bool = False) -> None:
        self._readings = [JobReadings(one) for one in checkpoints]
        self._control = control

    def checkpoints(self) -> JsonObject:
        """List the checkpoints, the views, the forms of commands, and whether commands are taken.

        `checkpoints`: the `url` and `name` of each; `views`: the `name` and `title` of each; `forms`: as `forms` lists
        them; `control`: whether any token would be taken.
        """
        urls = [one.checkpoint.url for one in self._readings]
        return {
            "checkpoints": [{"url": url, "name": name} for url, name in zip(urls, short_names(urls), strict=True)],
            "views": [{"name": view.name, "title": view.title} for view in views().values()],
            "forms": self._forms,
            "control": self._control,
        }

    @cached_property
    def _forms(self) -> list[JsonObject]:
        return forms()

    def version(self, index: int, options: Mapping[str, str], view: str | None = None) -> str:
        """Return a text that changes whenever the answer over this checkpoint does, or that of a view."""
        version, found = self._at(index).version(_step(options)), views().get(view or "")
        if view is None:  # The overview also has times, the step that is under way, and whether the job runs.
            return f"{version}+{self._at(index).checkpoint.folders.times.version()}+{self._at(index).life().word}"
        if found is None or found.also is nothing_else:
            return version
        return f"{version}+{crc32(found.also(self._reading(index, options)).encode()):x}"

    def jobs(self) -> JsonObject:
        """Return how each job stands, as `jobs`, in the order of the list.

        Of each its `name` and `url`, its `life` (see `_life`), and, once it has done a step: `step`; `time`, as
        `time_summary` has it; `rows`, `late`, `rejected` (rows of streams and results of queries); `queries`,
        `migrating` and `proposals`, counted. `error` says why it has nothing more to show.
        """
        listed = self.checkpoints()["checkpoints"]
        return {"jobs": [{**named, **self._standing(index)} for index, named in enumerate(listed)]}

    def _standing(self, index: int) -> JsonObject:
        readings = self._at(index)
        try:
            value: JsonObject = {"life": _life(readings)}
            if not readings.has_begun:
                return value | {"error": readings.pending}
            reading = readings.reading()
        except MidstreamError as error:
            return {"life": None, "error": str(error)}
        report = reading.report
        streams = report.streams.values()
        return value | {
            "step": reading.step,
            "time": time_summary(reading.times(CLOCKS)),
            "rows": sum(one.rows for one in streams),
            "late": sum(one.late for one in streams),
            "rejected": sum(one.rejected for one in streams) + sum(one.rejected for one in report.queries.values()),
            "queries": len(report.asked),
            "migrating": len({name for one in report.migrations for name in one.queries}),
            "proposals": sum(one.optimizer.waits for one in report.queries.values()) + report.lane_review.waits,
        }

    def overview(self, index: int, options: Mapping[str, str]) -> JsonObject:
        """Return the state of the job; before its first step only `url`, `life` and `pending`, a sentence on that step.

        `step`, `steps` (those kept), `host`, `lanes`, `queries` (their names), `migrating` (those that are carried to
        another plan), `waiting` (commands that no step has taken: `id`, `command`, its fields), `proposals` (`query`,
        `plan`, `strategy`, `gain`; for lanes `lanes`, `gain`), `under_way` (the step that the job is doing: `step`,
        `begun`, `rows`; or null), `life` (see `_life`), and `clock`: pairs of a step and
        when it ended, in seconds since 1970, of the newest steps where that is known.
        """
        readings = self._at(index)
        if not readings.has_begun:
            return {"url": readings.checkpoint.url, "life": _life(readings), "pending": readings.pending}
        reading = self._reading(index, options)
        manifest, report = reading.manifest, reading.report
        under_way = reading.checkpoint.under_way(reading.step) if reading.is_newest else None
        newest = reading.step if reading.is_newest else float("inf")  # a step may have been done since it was read
        host = ("spark" if manifest.is_on_spark else "embedded") if manifest.job else "saved engine"
        waits = [(name, query.optimizer.proposal) for name, query in report.queries.items() if query.optimizer.waits]
        proposals: list[JsonObject] = [{"query": name, **encode(proposal)} for name, proposal in waits]
        if report.lane_review.waits:
            proposals.append({"query": "", **encode(report.lane_review.proposal)})
        return {
            "url": reading.checkpoint.url,
            "host": host,
            "step": reading.step,
            "steps": [one for one in readings.steps(reading) if 0 <= one <= newest],
            "lanes": report.lanes,
            "queries": [query.name for query in report.asked],
            "migrating": sorted({name for one in report.migrations for name in one.queries}),
            "waiting": [{"id": number, **encode(command)} for number, command in reading.waiting],
            "proposals": proposals,
            "under_way": None if under_way is None else encode(under_way),
            "life": _life(readings),
            "clock": [[one.step, one.ended] for one in reading.times(CLOCKS)],
        }

    def view(self, index: int, name: str, options: Mapping[str, str]) -> JsonObject:
        """Return what a view shows, as its file documents it."""
        if name not in views():
            raise QueryError(f"there is no view {name!r}", place="view", remedy=f"use one of: {', '.join(views())}")
        view, reading = views()[name], self._reading(index, options)
        read = {option: options[option] for option in view.options if option in options}
        with self._at(index).lock:
            known = (name, view.also(reading), tuple(read.items()))
            found = reading.answers.pop(known, None)
            reading.answers[known] = found = view.data(reading, read) if found is None else found
            while len(reading.answers) > ANSWERS_KEPT:
                reading.answers.popitem(last=False)
            return found

    def send(self, index: int, value: Any) -> JsonObject:
        """Append a command, given as logs have it, to the job's log.

        Returns: its `id`, the step `since` which it waits, and the command as it was logged.

        Raises the `MidstreamError` that the job would refuse it by; then nothing is appended.
        """
        checkpoint = self._at(index).checkpoint
        command, since = command_of(value), checkpoint.manifest().step
        with fault_located(lambda: f"command {command.kind}"):
            number, command = checkpoint.send(command)
        return {"id": number, "since": since, **encode(command)}

    def attempt(self, index: int, value: Any) -> JsonObject:
        """Try something that changes nothing: an object with `of` and `sql`, or with `query` and `plan`.

        `of` is `rows`, for SQL over the rows that are kept, or `plan`, for a query that the job might be given.
        """
        match value:
            case {"of": "rows", "sql": str(sql)}:
                tried = partial(answer, sql=sql)
            case {"of": "plan", "sql": str(sql)}:
                tried = partial(planned, sql=sql)
            case {"of": "move", "query": str(query), "plan": str(plan)}:
                tried = partial(moved, query=query, plan=plan)
            case _:
                raise QueryError(
                    "the dashboard cannot try this request", place="request", remedy="send sql, or a query and a plan"
                )
        readings = self._at(index)
        with readings.lock:
            return tried(readings.reading())

    def outcome(self, index: int, number: int, since: int) -> JsonObject:
        """Find out what became of a command that was sent after the step `since`.

        `state` is `sent`, `taken`, `done` or `refused`, and `event` the event that says so.
        """
        checkpoint = self._at(index).checkpoint
        command = checkpoint.commands.read(number)
        if not isinstance(command, StepCommand):
            raise QueryError(f"there is no command {number}", place="commands", remedy="give it again")
        found = outcome_of(checkpoint, number, command, since)
        return {"id": number, **encode(command), "state": found.state, "event": found.event}

    def _reading(self, index: int, options: Mapping[str, str]) -> JobReading:
        return self._at(index).reading(_step(options))

    def _at(self, index: int) -> JobReadings:
        if not 0 <= index < len(self._readings):
            known = f"0 to {len(self._readings) - 1}"
            raise CheckpointError(
                f"there is no checkpoint {index}", place="address", remedy=f"use a number from {known}"
            )
        return self._readings[index]


def short_names(urls: Sequence[str]) -> list[str]:
    """Name checkpoints by the ends of their addresses, as long as it takes to tell them apart.

    >>> short_names(["/data/a/ckpt", "/data/b/ckpt", "s3://bucket/orders"])
    ['a/ckpt', 'b/ckpt', 'orders']
    """
    parts = [[part for part in url.split("/") if part] for url in urls]
    names = ["/".join(one[-1:]) or url for one, url in zip(parts, urls, strict=True)]
    for length in range(2, 1 + max(map(len, parts), default=0)):
        names = [
            name if names.count(name) == 1 else "/".join(one[-length:]) for name, one in zip(names, parts, strict=True)
        ]
    return names


def forms() -> list[JsonObject]:
    """Describe a form for each kind of command that users give, also for those of other packages.

    Each has the `command` as logs name it, its `verb` and `title`, and `fields`, in order: `name`, `kind` (of
    `Input.kind`), `help`, `required`, `first` (an argument of the command line), `running` (the name of a running
    query), `long`, `unset` (a flag that sets what is true to false), `least`, `most`, and what there is as `choices`.
    """
    load_modules(COMMANDS)
    return [
        {
            "command": kind.kind,
            "verb": verb,
            "title": (getdoc(kind) or verb).partition("\n\n")[0].replace("\n", " "),
            "fields": [_field(one) for one in inputs],
        }
        for verb, (kind, inputs) in offered().items()
    ]


def _field(one: Input) -> JsonObject:
    prompt = one.prompt
    return {
        "name": one.name,
        "kind": one.kind,
        "help": prompt.help,
        "required": one.required,
        "first": one.is_argument or one.required,
        "running": prompt.running,
        "long": prompt.long,
        "unset": one.default is True,
        "least": prompt.least,
        "most": prompt.most,
        "choices": None if prompt.choices is None else list(prompt.choices()),
    }


def _life(readings: JobReadings) -> JsonObject:
    # `state`, `since`, `reason` and `process` as `midstream status --json` has them, and `word`, which names the state.
    life = readings.life()
    return {**life.to_json(), "word": life.word}


def _step(options: Mapping[str, str]) -> int | None:
    text = options.get("step", "")
    try:
        return int(text) if text else None
    except ValueError:
        raise QueryError(f"{text!r} is not a step", place="step", remedy="use the number of a kept step") from None
