"""HybMig Fig. 18: overhead over the stream rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from typing_extensions import override

from midstream.lab.figure import Scale
from midstream.lab.hybmig_overhead import OverheadFigure
from midstream.lab.hybmig_settings import RATES, SETTING


class HybMig18(OverheadFigure):
    """Peak memory and comparisons over tau, w = 3 and n = 6."""

    name: ClassVar[str] = "hybmig_18"
    title: ClassVar[str] = "overhead over tau"
    source: ClassVar[str] = "HybMig §5.1, Fig. 18"
    setting: ClassVar[str] = f"{SETTING} w = 3 and n = 6; the stream rate varies as in Table 3."
    parameter: ClassVar[str] = "tau (rows a second)"

    @override
    def settings(self, scale: Scale) -> Sequence[tuple[float, dict[str, Any]]]:
        return [(value, {"rate": value}) for value in scale.pick(quick=RATES[1:3], full=RATES)]
