"""How a running job goes, on one line."""

from __future__ import annotations

from collections.abc import Sequence

from midstream.model.step_time import MINUTE, StepTime, against_interval, rows_per_second
from midstream.model.words import brief_text, counted, rough_span_text

DAY = 86_400.0


def lags(behind: float | None, watermark_lag: float | None) -> list[str]:
    """Describe how far results are behind: the newest event behind the clock, the watermark behind that event.

    For events that are not of today, the clock's distance from them says nothing.

    >>> lags(3.0, 2.0), lags(9e9, 2.0)
    (['newest event 3 s ago', 'watermark 2 s behind it'], ['watermark 2 s behind the newest event'])
    """
    of_today = [f"newest event {rough_span_text(behind)} ago"] if behind is not None and 0 <= behind < DAY else []
    if watermark_lag is None:
        return of_today
    return [*of_today, f"watermark {rough_span_text(watermark_lag)} behind {'it' if of_today else 'the newest event'}"]


def life_line(times: Sequence[StepTime]) -> str:
    """Describe steps, oldest first, on one line.

    It has the newest step, and of the minute before it the rows and results a second of work, how far results are
    behind, late rows and dead letters, and what waits at the sources. Without a step it is empty.

    >>> before = StepTime(8, 100.0, 0.2, rows={"A": 500}, results=20)
    >>> newest = StepTime(9, 101.0, 0.3, rows={"A": 700}, results=40, late=3, newest=98_000_000, watermark=96_000_000)
    >>> life_line([before, newest])
    'step 9 · 300 ms · 2,400 rows/s · 120 results/s · newest event 3 s ago · watermark 2 s behind it · 3 late'
    """
    if not times:
        return ""
    last = times[-1]
    lately = [one for one in times if one.ended >= last.ended - MINUTE]
    busy = sum(one.seconds for one in lately)
    beside = against_interval(last.seconds, last.interval)
    parts = [f"step {last.step:,}", brief_text(last.seconds) + (f" ({beside})" if beside else "")]
    rate = rows_per_second(lately)
    if rate is not None:
        parts.append(f"{rate:,.0f} rows/s")
    if busy > 0:
        parts.append(f"{sum(one.results for one in lately) / busy:,.0f} results/s")
    parts += lags(last.behind, last.watermark_lag)
    late, dead = sum(one.late for one in lately), sum(one.rejected for one in lately)
    parts += [f"{late:,} late"] * bool(late) + [counted(dead, "dead letter")] * bool(dead)
    waiting = sum(last.backlog.values())
    return " · ".join([*parts, *([f"{waiting:,} waiting at the sources"] if waiting else [])])
