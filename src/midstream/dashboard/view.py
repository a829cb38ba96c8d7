"""What every view of the dashboard offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from midstream.dashboard.reading import JobReading

ViewData = Callable[[JobReading, Mapping[str, str]], dict[str, Any]]
"""From how a job stands and what the page asks for, JSON values."""


ViewVersion = Callable[[JobReading], str]
"""What a view's values change with beside the steps and the commands."""


def nothing_else(reading: JobReading) -> str:
    """Return an empty text: a view's values change with steps and commands alone."""
    return ""


@dataclass(frozen=True)
class DashboardView:
    """A view: a file in `dashboard/views` that has one as `VIEW`, and `static/views/NAME.js`, which draws it.

    `data` gives the JSON values that the script gets; `options` names the parameters of the page's address that it
    reads, texts all, and it is given no others: `query` is the chosen query. `title` stands in the list of views,
    which is in rising `order`. Where the values change without a step or a command, `also` gives what they change with,
    at the cost of a listing or two.
    """

    name: str
    title: str
    data: ViewData
    order: int = 100
    also: ViewVersion = nothing_else
    options: tuple[str, ...] = ()
