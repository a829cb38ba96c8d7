"""Manifests that older versions of midstream wrote, as they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def upgraded(document: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest in a document of any readable format, as this version would have written it.

    Format 2 wrote out every field of every value, those at their default included; they read as they are.
    """
    return {name: value for name, value in document.items() if name != "format"}
