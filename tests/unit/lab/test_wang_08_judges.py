"""Wang's claims on the measured figures, judged on made-up data: each verdict can be either."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from midstream.lab.drawing import PANEL, RATE
from midstream.lab.figure import Figure, Scale
from midstream.lab.figures.wang_chains import (
    C_SYS,
    ENDS,
    ENGINE,
    IN_AND_OUT,
    LARGE,
    MEASURED,
    MORE,
    ONE_JOIN,
    OVERHEADS,
    PANELS,
    PROBED,
    PURGE,
    ROUTE,
    ROWS,
    SERVICE,
    SLICES,
    SMALL,
    UNIFORM,
    WORK,
    Wang0801,
    Wang0802,
    Wang0803,
)
from midstream.lab.lab_report import picture
from midstream.lab.tidy import table

SLOW, FAST = 20.0, 80.0


def holds(figure: Figure, data: pa.Table) -> tuple[bool, ...]:
    return tuple(verdict.holds for verdict in figure.judge(data))


def memory(mem_opt: float, pull_up: float, push_down: float, *, wider: float = 1.0, joined: float = 0.0) -> pa.Table:
    """Rows by mode, for Mostly-Large windows so many times as many, and some more where many join."""
    return table(
        {
            PANEL: panel,
            RATE: rate,
            "case": case,
            ROWS: rate * rows * (wider if panel.startswith("Mostly-Large") else 1) + joined * (panel == ONE_JOIN),
        }
        for panel in Wang0801.panels
        for rate in (SLOW, FAST)
        for case, rows in (("mem_opt", mem_opt), ("pull_up", pull_up), ("push_down", push_down))
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (memory(75.0, 100.0, 90.0, wider=1.5), (True, True, True, True)),
        (memory(90.0, 100.0, 95.0, wider=1.5), (True, False, True, True)),
        (memory(75.0, 100.0, 70.0, wider=1.05), (False, True, False, True)),
        (memory(60.0, 100.0, 90.0, joined=0.5), (True, False, False, False)),
    ],
)
def test_memory(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Always least, 20 % to 30 %, by windows, not by joins."""
    assert holds(Wang0801(), data) == expected


def service(at_slow: float, at_fast: float, route: float = 2.0, purge: float = 1.0) -> pa.Table:
    """Mem-Opt's service over its rivals' at both rates, and the powers that costs grow with."""
    over = {SLOW: at_slow, FAST: at_fast}
    return table(
        {
            PANEL: panel,
            RATE: rate,
            "case": case,
            SERVICE: 100 * over[rate] if case == "mem_opt" else 100.0,
            PURGE: 2 * rate**purge if case == "mem_opt" else rate**purge,
            ROUTE: rate**route,
            PROBED: 1.0,
            WORK: 1.0,
        }
        for panel in Wang0802.panels
        for rate in (SLOW, FAST)
        for case in ("mem_opt", "pull_up", "push_down")
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (service(1.2, 1.5), (True, True, True, True, True)),
        (service(0.9, 1.1), (False, True, True, True, False)),
        (service(1.5, 1.2), (True, False, True, True, False)),
        (service(1.2, 1.5, route=1.0, purge=2.0), (True, True, False, False, True)),
    ],
)
def test_service_rate(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Always most, more at faster rates, routing, purging, 40 %."""
    assert holds(Wang0802(), data) == expected


def chains(shapes: Mapping[str, tuple[int, float]], gains: tuple[float, float, float], rows: int = 0) -> pa.Table:
    """CPU-Opt chains by panel as slices and the first one's end, their gains by queries, the rows they hold more."""
    gain = dict(zip(MORE, gains, strict=True))
    return table(
        {
            PANEL: panel,
            RATE: rate,
            "case": case,
            C_SYS: c_sys,
            SLICES: shapes.get(panel, (5, 2.0))[0] if case == "cpu_opt" else len(windows),
            ENDS: shapes.get(panel, (5, 2.0))[1] if case == "cpu_opt" else windows[0],
            MEASURED: 3,
            ROWS: 100.0 + (rows if case == "cpu_opt" else 0),
            SERVICE: 100.0,
            ENGINE: 100 * (1 + gain.get(panel, 0)) if case == "cpu_opt" else 100.0,
        }
        for panel, windows in PANELS.items()
        for rate in (SLOW, FAST)
        for c_sys in OVERHEADS
        for case in ("mem_opt", "cpu_opt")
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            chains({UNIFORM: (12, 2.5), SMALL: (3, 10.0), LARGE: (2, 6.0)}, (0.1, 0.2, 0.3)),
            (True, True, True, True, True, True),
        ),
        (
            chains({UNIFORM: (6, 5.0), SMALL: (12, 1.0), LARGE: (2, 25.0)}, (0.1, 0.3, 0.2), rows=1),
            (False, False, False, False, False, False),
        ),
        (
            chains({UNIFORM: (12, 2.5), SMALL: (3, 5.0), LARGE: (3, 6.0)}, (0.1, 0.2, 0.3)),
            (True, True, False, False, True, True),
        ),
    ],
)
def test_chains(data: pa.Table, expected: tuple[bool, ...]) -> None:
    """Uniform, skewed, all small, two slices, more queries, memory."""
    assert holds(Wang0803(), data) == expected


def test_a_verdict_on_a_chain_says_with_which_c_sys_it_would_hold() -> None:
    so = chains({LARGE: (2, 6.0)}, (0.1, 0.2, 0.3))
    other = chains({LARGE: (5, 2.0)}, (0.1, 0.2, 0.3))
    overheads = [c == 64.0 for c in so.column(C_SYS).to_pylist()]
    data = pa.concat_tables([so.filter(pa.array(overheads)), other.filter(pa.array([not c for c in overheads]))])
    two = Wang0803().judge(data)[3]
    assert not two.holds and "at every rate with C_sys 64," in two.numbers
    assert "5, 5 slices" in two.numbers, f"drawn is C_sys {IN_AND_OUT:g}"


def test_the_pictures_need_nothing_but_the_data(tmp_path: Path) -> None:
    for figure, data in (
        (Wang0801(), memory(75.0, 100.0, 90.0)),
        (Wang0802(), service(1.2, 1.5)),
        (Wang0803(), chains({}, (0.1, 0.2, 0.3))),
    ):
        picture(figure, data, tmp_path / f"{figure.name}.png")
        assert (tmp_path / f"{figure.name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_quick_scale_spans_the_papers_rates() -> None:
    for scale in Scale:
        rates = {at[RATE] for at, _ in Wang0801().runs(scale)}
        assert min(rates) == SLOW and max(rates) == FAST
