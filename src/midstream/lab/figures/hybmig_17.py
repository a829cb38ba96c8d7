"""HybMig Fig. 17: overhead over the window size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from midstream.lab.figure import Scale
from midstream.lab.hybmig_overhead import OverheadFigure
from midstream.lab.hybmig_settings import SETTING, WINDOWS


class HybMig17(OverheadFigure):
    """Peak memory and comparisons over w, tau = 1 and n = 6."""

    name: ClassVar[str] = "hybmig_17"
    title: ClassVar[str] = "overhead over w"
    source: ClassVar[str] = "HybMig §5.1, Fig. 17"
    setting: ClassVar[str] = f"{SETTING} tau = 1 and n = 6; the window size varies as in Table 3."
    parameter: ClassVar[str] = "w (minutes)"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"window": value}) for value in scale.pick(quick=WINDOWS[1:3], full=WINDOWS)]
