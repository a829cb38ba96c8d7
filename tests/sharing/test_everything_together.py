"""Queries change while they migrate, lanes and modes of sharing change, streams fall silent: all of it together."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from tests.drawing import FIFTHS, drawing
from tests.sharing.drive import run
from tests.sharing.everything import everything
from tests.sharing.judge import Judge
from tests.sharing.reproduction import reproduction

pytestmark = [pytest.mark.property, pytest.mark.timeout(7200)]

done: Counter[str] = Counter()

SHARES = 4
"""Of the cases, so that processes side by side can have one each."""


@pytest.mark.parametrize("share", range(SHARES))
@drawing(80 // SHARES, soak=40)
@given(seed=st.integers(0, 2**40))
def test_each_query_amid_everything(share: int, fifth: int, seed: int) -> None:
    # Hypothesis draws the same first number for all: fifths and shares make other cases of it.
    drawn = everything((seed * len(FIFTHS) + fifth) * SHARES + share)
    try:
        found = run(drawn)
        Judge(drawn, found).check()
    except Exception:
        note(reproduction(drawn))
        raise
    done["cases"] += 1
    refused = [action for action, _ in found.refused]
    done.update(type(action).__name__ for action in drawn.actions if action not in refused)
    done["answered"] += sum(any(table.num_rows for table in s.tables) for s in found.segments)
    done["segments"] += len(found.segments)
    kinds = {type(action).__name__ for action in drawn.actions if action not in refused}
    done["together"] += kinds >= {"Change", "Move", "Reshare", "Rescale", "Restart"}


def test_everything_was_exercised() -> None:
    """Runs after the test above, which would pass if nothing met anything."""
    if done["segments"] < 150:
        pytest.skip(f"only {done['segments']} segments were drawn in this process: select the test above too")
    assert done["answered"] > 0.3 * done["segments"], done
    assert done["together"] > 0.15 * done["cases"], done
    assert min(done[kind] for kind in ("Change", "Move")) > 0.3 * done["segments"], done
