"""A picture is kept as PNG, for pages, and as SVG, for print: equal data, equal bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt


def save(figure: Any, path: Path) -> None:
    """Write a figure as PNG at `path` and as SVG beside it, and let go of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    with plt.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
