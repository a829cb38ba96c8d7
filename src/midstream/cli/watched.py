"""A job's status shown again and again: the terminal's dashboard."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from midstream.cli.output import say, terminal

if TYPE_CHECKING:
    from midstream.checkpoint.reader import Checkpoint


def watched(checkpoint: Checkpoint, every: float, show: Callable[[], None], as_json: bool) -> None:
    """Show a job's status until it has ended, or until somebody interrupts.

    On a terminal the whole screen is renewed by what `show` prints. Elsewhere a line is written each time: how the job
    is and goes, or with `as_json` its status as one JSON value.
    """
    with suppress(KeyboardInterrupt):
        if as_json:
            _again(checkpoint, every, lambda: _json_line(checkpoint))
        elif terminal().is_terminal:
            _on_screen(checkpoint, every, show)
            show()
        else:
            _again(checkpoint, every, lambda: _line(checkpoint))


def _again(checkpoint: Checkpoint, every: float, show: Callable[[], None]) -> None:
    while True:
        runs = checkpoint.liveness().takes_commands
        show()
        if not runs:
            return
        time.sleep(every)


def _on_screen(checkpoint: Checkpoint, every: float, show: Callable[[], None]) -> None:
    from rich.live import Live
    from rich.text import Text

    with Live(console=terminal(), screen=True, auto_refresh=False) as live:

        def renew() -> None:
            with terminal().capture() as printed:
                show()
            live.update(Text.from_ansi(printed.get()), refresh=True)

        _again(checkpoint, every, renew)


def _json_line(checkpoint: Checkpoint) -> None:
    sys.stdout.write(json.dumps(checkpoint.status(checkpoint.report()), ensure_ascii=False, default=str) + "\n")
    sys.stdout.flush()


def _line(checkpoint: Checkpoint) -> None:
    from midstream.explain.life_line import life_line

    times = checkpoint.step_times()
    under_way = checkpoint.under_way(times[-1].step if times else -1)
    so_far = "" if under_way is None else f" · {under_way.sentence(time.time())}"
    say(f"{checkpoint.liveness().sentence(time.time())} · {life_line(times)}{so_far}")
