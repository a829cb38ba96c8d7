"""Pictures of the pages are there as PNG and as SVG."""

from __future__ import annotations

import re
import xml.dom.minidom

import pytest

from tests.docs.pages import ROOT

DRAWN = ("migration", "optimizer", "optimizer_story", "plan_change", "ring", "sharing")


@pytest.mark.parametrize("name", DRAWN)
def test_each_is_there_in_both_formats(name: str) -> None:
    assert (ROOT / "docs" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    text = (ROOT / "docs" / f"{name}.svg").read_text()
    xml.dom.minidom.parseString(text)
    assert not re.search(r"(href|src)=.https?:", text), "nothing is fetched"
