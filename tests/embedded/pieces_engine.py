"""An engine whose results go to their sinks in pieces: `python -m tests.embedded.pieces_engine FOLDER`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import midstream as ms
from midstream.runtime import piece_writer
from midstream.runtime.piece_writer import PieceSizes
from tests.crash_case import CHAIN, STREAMS, crash_case
from tests.oracle.arrival import Lifetime

CASE = replace(crash_case(20, 40, 60, 80), queries=(Lifetime("chain", CHAIN),))
PART = 7


def main(root: Path) -> None:
    """Push what the checkpoint has not taken yet, to the end, with small pieces."""
    piece_writer.SIZES = PieceSizes(evaluated=PART)
    with ms.Engine(checkpoint=f"{root}/checkpoint") as engine:
        for spec in STREAMS:
            engine.create_stream(spec.name, spec.schema, spec.timestamp, lateness=spec.lateness, unit=spec.unit)
        engine.add_query("chain", CHAIN.cql(), sink=ms.sinks.files(f"{root}/answers/chain"))
        for number in range(engine.manifest.step + 1, len(CASE.steps)):
            engine.push(dict(CASE.steps[number]), returns=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
