"""Every event in words that a reader of a terminal understands."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from midstream.explain.event_sentence import event_sentence
from midstream.model.events import ChainChanged, CommandRefused, Event, LanesReviewed, PlanReviewed, QueryAdded
from tests.unit.model.test_events import EVENTS


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind)
def test_no_event_shows_python_values_or_microseconds(event: Event) -> None:
    text = event_sentence(event)
    assert text != event.kind.replace("_", " ") and text == text.strip()
    assert not re.search(r"[{}]|\d{7,}|\bNone\b|\('|\['", text), text


def test_times_are_dates_and_lengths_have_units() -> None:
    added = QueryAdded(3, "q", "(A B)", 1357020000000000, 1357023600000000)
    assert event_sentence(added) == (
        "query q starts with plan (A B) and sees new rows and those from "
        "2013-01-01 06:00:00 on, exact from 2013-01-01 07:00:00"
    )
    cut = ChainChanged(3, "A B", (20_000_000, 90_000_000), (), "query r was added", 2)
    assert event_sentence(cut) == "chain A B of 2 queries is cut at ages 20 s, 90 s: query r was added"


def test_decisions() -> None:
    review = PlanReviewed(3, "q", ("q",), "adaptive", "stay", "it is cheap", "(A B)")
    assert event_sentence(review) == "query q stays with (A B): it is cheap"
    asked = replace(review, decision="ask", chosen="(B A)", answer="midstream approve CKPT q")
    assert event_sentence(asked) == (
        "query q: waits for an answer: (B A) instead of (A B): it is cheap; midstream approve CKPT q"
    )
    lanes = LanesReviewed(3, "switch", "a step takes long", 1, 2)
    assert event_sentence(lanes) == "switches to 2 lanes instead of 1: a step takes long"
    assert event_sentence(replace(lanes, decision="stay")) == "1 lane stay: a step takes long"


def test_a_refused_command_names_its_query() -> None:
    refused = CommandRefused(3, {"command": "migrate", "query": "q", "options": {"rate": 0.5}}, "why not")
    assert event_sentence(refused) == "command migrate of query q refused: why not"
