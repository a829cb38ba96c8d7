"""The commands: one file each, found by looking, so that the codec knows every kind.

In: a frozen value, from a user, a log or a manifest. Out: a changed `Draft`, or the `MidstreamError` that refuses it.
"""

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__, f"{__name__}."):
    importlib.import_module(_module.name)
