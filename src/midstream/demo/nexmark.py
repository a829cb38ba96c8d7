"""NEXMark's input: people, auctions and bids of an auction house, drawn by the rules of the benchmark's generator.

Of every 50 events one is a person, three are auctions and 46 are bids. Half of the bids go to one hot auction, three
of four come from one hot bidder, and three of four auctions have one hot seller; which these are moves on as ids grow.
An event may name an auction or a person up to ten ids ahead of the newest, so some rows find their partner later.

Source: Tucker, Tufte, Papadimos and Maier, "NEXMark: a benchmark for queries over data streams" (2002), with the
proportions and ratios that Apache Beam's generator takes by default.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

PEOPLE, AUCTIONS, BIDS = 1, 3, 46
EVENTS = PEOPLE + AUCTIONS + BIDS
"""So many events make one round of the proportions."""
FIRST_ID, FIRST_CATEGORY, CATEGORIES = 1000, 10, 5
HOT_AUCTIONS, HOT_SELLERS, HOT_BIDDERS = 2, 4, 4
"""One of so many draws is not of the hot key."""
HOT_EVERY = 100
"""The hot key is the newest id that this divides."""
ACTIVE_PEOPLE, AUCTIONS_IN_FLIGHT, LEAD = 1000, 100, 10
SIDE_KEYS = 10_000
"""How many keys the side input has."""
START = 1_436_918_400_000_000
"""The time of the first event, in microseconds: 2015-07-15 00:00:00, as in Beam."""

FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
CHANNELS, ITEMS = 10_000, 1_000
DIRECTORIES = [f"{a}{b}{c}" for a in "abcde" for b in "xyz" for c in "mnopqrst"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class EventMoments:
    """Some events: of each the last person and the last auction that it can know of, counted from 0, and its time."""

    person: Integers
    auction: Integers
    time: Integers

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Heat:
    """One of so many draws is not of the hot key: a number, or one for each bid, auction, bid."""

    auctions: int | Integers = HOT_AUCTIONS
    sellers: int | Integers = HOT_SELLERS
    bidders: int | Integers = HOT_BIDDERS


@dataclass(frozen=True)
class Auctions:
    """The three streams of NEXMark, each in the order of its times."""

    person: pa.Table
    auction: pa.Table
    bid: pa.Table


def generate(events: int, seed: int = 0, per_second: int = 10_000) -> Auctions:
    """Generate the first `events` events, so many a second of event time; equal arguments give equal rows.

    >>> drawn = generate(1000)
    >>> drawn.person.num_rows, drawn.auction.num_rows, drawn.bid.num_rows
    (20, 60, 920)
    >>> drawn.bid.equals(generate(1000).bid), drawn.bid.equals(generate(1000, seed=1).bid)
    (True, False)
    """
    number = np.arange(events, dtype=np.int64)
    place = number % EVENTS
    seen = EventMoments(_newest_person(number), _newest_auction(number), START + number * 1_000_000 // per_second)
    ahead = AUCTIONS_IN_FLIGHT * EVENTS // AUCTIONS
    parts = (place < PEOPLE, (place >= PEOPLE) & (place < PEOPLE + AUCTIONS), place >= PEOPLE + AUCTIONS)
    people, auctions, bids = (EventMoments(seen.person[part], seen.auction[part], seen.time[part]) for part in parts)
    return drawn(people, auctions, bids, seed, longest=max(2 * ahead * 1_000_000 // per_second, 1))


def drawn(
    people: EventMoments, auctions: EventMoments, bids: EventMoments, seed: int, longest: int, heat: Heat | None = None
) -> Auctions:
    """Draw the rows of events in any proportions; an auction is open for `longest` microseconds at most."""
    heat = heat or Heat()
    # Each stream draws from its own sequence: a column more in one leaves the others as they were.
    randoms = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(3))
    return Auctions(
        _people(people, next(randoms)),
        _auctions(auctions, next(randoms), heat, longest),
        _bids(bids, next(randoms), heat),
    )


def write(folder: Path, events: int, seed: int = 0, per_second: int = 10_000, files: int = 4) -> None:
    """Write the first `events` events below a folder, each stream as so many Parquet files, in order of time."""
    for name, table in vars(generate(events, seed, per_second)).items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        ends = [table.num_rows * n // files for n in range(files + 1)]
        for number, (begin, end) in enumerate(itertools.pairwise(ends)):
            pq.write_table(table.slice(begin, end - begin), folder / name / f"part-{number:03d}.parquet")
    pa_csv.write_csv(side_input(seed), folder / "side_input.csv")


def side_input(seed: int = 0, keys: int = SIDE_KEYS) -> pa.Table:
    """Draw the bounded input that query 13 joins bids with: a value of letters for each key.

    >>> side_input(keys=2).column("key").to_pylist()
    [0, 1]
    """
    random = np.random.default_rng(np.random.SeedSequence(seed).spawn(4)[3])
    letters = random.integers(ord("a"), ord("z") + 1, (keys, 8)).astype(np.uint8)
    values = [bytes(word).decode() for word in letters]
    return pa.table({"key": np.arange(keys), "value": pa.array(values, pa.string())})


def _people(seen: EventMoments, random: np.random.Generator) -> pa.Table:
    n = len(seen)
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    return pa.table(
        {
            "id": seen.person + FIRST_ID,
            "name": _chosen(names, random, n),
            "email_address": _mails(random, n),
            "city": _chosen(CITIES, random, n),
            "state": _chosen(STATES, random, n),
            "ts": _instants(seen),
        }
    )


def _auctions(seen: EventMoments, random: np.random.Generator, heat: Heat, longest: int) -> pa.Table:
    n, newest = len(seen), seen.person
    hot = random.integers(heat.sellers, size=n) > 0
    seller = np.where(hot, newest // HOT_EVERY * HOT_EVERY, _some_person(newest, random))
    first_bid = _prices(random, n)
    return pa.table(
        {
            "id": seen.auction + FIRST_ID,
            "item_name": _chosen([f"item {n}" for n in range(ITEMS)], random, n),
            "initial_bid": first_bid,
            "reserve": first_bid + _prices(random, n),
            "expires": pa.array(seen.time + 1 + random.integers(longest, size=n), pa.timestamp("us")),
            "seller": seller + FIRST_ID,
            "category": FIRST_CATEGORY + random.integers(CATEGORIES, size=n),
            "ts": _instants(seen),
        }
    )


def _bids(seen: EventMoments, random: np.random.Generator, heat: Heat) -> pa.Table:
    n, newest, person = len(seen), seen.auction, seen.person
    oldest = np.maximum(newest - AUCTIONS_IN_FLIGHT, 0)
    any_auction = oldest + random.integers(newest - oldest + 1 + LEAD)
    hot_auction = random.integers(heat.auctions, size=n) > 0
    hot_bidder = random.integers(heat.bidders, size=n) > 0
    bidder = np.where(hot_bidder, person // HOT_EVERY * HOT_EVERY + 1, _some_person(person, random))
    channels = HOT_CHANNELS + [f"channel-{i}" for i in range(CHANNELS)]
    hot_channel = random.integers(2, size=n) > 0
    channel = np.where(
        hot_channel,
        random.integers(len(HOT_CHANNELS), size=n),
        len(HOT_CHANNELS) + random.integers(CHANNELS, size=n),
    )
    return pa.table(
        {
            "auction": np.where(hot_auction, newest // HOT_EVERY * HOT_EVERY, any_auction) + FIRST_ID,
            "bidder": bidder + FIRST_ID,
            "price": _prices(random, n),
            "channel": pa.array(channels).take(pa.array(channel)),
            "url": _addresses(np.where(hot_channel, -1, channel - len(HOT_CHANNELS)), random),
            "ts": _instants(seen),
        }
    )


def _newest_person(number: Integers) -> Integers:
    # Counted from 0.
    return number // EVENTS


def _newest_auction(number: Integers) -> Integers:
    # Counted from 0; -1 for a person who comes before any auction.
    return number // EVENTS * AUCTIONS + np.clip(number % EVENTS - PEOPLE, -1, AUCTIONS - 1)


def _some_person(newest: Integers, random: np.random.Generator) -> Integers:
    # One of the people who came last, or one of the next few.
    active = np.minimum(newest + 1, ACTIVE_PEOPLE)
    return newest + 1 - active + random.integers(active + LEAD)


def _prices(random: np.random.Generator, n: int) -> Integers:
    # In cents; their logarithms are spread evenly over six powers of ten.
    return np.rint(10.0 ** (random.random(n) * 6) * 100).astype(np.int64)


def _mails(random: np.random.Generator, n: int) -> pa.Array:
    return pc.binary_join_element_wise(_chosen(DIRECTORIES, random, n), _chosen(DIRECTORIES, random, n), "@")


def _addresses(channel: Integers, random: np.random.Generator) -> pa.Array:
    # Three directories each; the address of a channel with a number (not -1) names it.
    parts = ["https://www.nexmark.com", *(_chosen(DIRECTORIES, random, len(channel)) for _ in range(3))]
    pages = pa.array(["item.htm?query=1", *(f"item.htm?query=1&channel_id={n}" for n in range(CHANNELS))])
    return pc.binary_join_element_wise(*parts, pages.take(pa.array(channel + 1)), "/")


def _chosen(words: list[str], random: np.random.Generator, n: int) -> pa.Array:
    return pa.array(words).take(pa.array(random.integers(len(words), size=n)))


def _instants(seen: EventMoments) -> pa.Array:
    return pa.array(seen.time, pa.timestamp("us"))
