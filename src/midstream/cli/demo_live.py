"""`midstream demo --dashboard`: a job that goes on, with its dashboard, until it is interrupted."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from midstream.cli.output import say


def show_live(out: Path, port: int, pace: float) -> None:
    """Start the job and its dashboard, and print where that is."""
    from midstream.demo.flights import read_streams
    from midstream.demo.live import go_on, live_engine

    streams = read_streams()
    with live_engine(streams, out / "live") as engine, engine.dashboard(port=port, control=True) as dashboard:
        say("Flights from JFK and LGA of 2013 are joined with their weather, four days a step, over and over.")
        say(f"dashboard: {dashboard.url}")
        say("In summer its steps take several times as long. Another plan is proposed there, in some ten seconds:")
        say("approve it, and see them become fast again. Left alone, it is withdrawn in autumn and returns in spring.")
        say(f"or from another terminal: midstream plans {out / 'live'} flights. Control+C ends it.")
        with suppress(KeyboardInterrupt):
            go_on(engine, streams, pace)
