"""The views, one file each, found by looking: nothing names them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from midstream.dashboard.view import DashboardView


@cache
def views() -> dict[str, DashboardView]:
    """Find every view, by name, in the order in which the page lists them.

    >>> "plan" in views()
    True
    """
    modules = (importlib.import_module(one.name) for one in pkgutil.iter_modules(__path__, f"{__name__}."))
    found: list[DashboardView] = [module.VIEW for module in modules]
    return {view.name: view for view in sorted(found, key=lambda view: (view.order, view.name))}
