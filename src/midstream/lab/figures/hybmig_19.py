"""HybMig Fig. 19: overhead over the number of streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from midstream.lab.figure import Scale
from midstream.lab.hybmig_overhead import OverheadFigure
from midstream.lab.hybmig_settings import SETTING, STREAMS


class HybMig19(OverheadFigure):
    """Peak memory and comparisons over n, w = 3 and tau = 1."""

    name: ClassVar[str] = "hybmig_19"
    title: ClassVar[str] = "overhead over n"
    source: ClassVar[str] = "HybMig §5.1, Fig. 19"
    setting: ClassVar[str] = f"{SETTING} w = 3 and tau = 1; the number of streams varies as in Table 3."
    parameter: ClassVar[str] = "n"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"streams": value}) for value in scale.pick(quick=STREAMS[:3], full=STREAMS)]
