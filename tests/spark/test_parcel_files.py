"""Bodies of parcels that go by files come back as they were, in an order that does not depend on who came first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from midstream.model.errors import CheckpointError
from midstream.spark.parcel import Parcel, ParcelFiles, in_order, reported
from midstream.storage.files import FileStore
from midstream.storage.sweep import sweep
from tests.unit.state.test_sweep import manifest


def parcels(stage: int, *bodies: bytes) -> list[Parcel]:
    return [Parcel(to, stage, "visits", "q", (to,), body) for to, body in enumerate(bodies)]


def test_large_bodies_come_back_and_small_ones_stay(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path, epoch=1), step=7, least=4)
    sent = parcels(2, b"abcd", b"abc", b"")
    going = files.written(sent, partition=0)
    assert [(one.body, bool(one.file)) for one in going] == [(b"", True), (b"abc", False), (b"", False)]
    assert [bytes(one.body) for one in files.read(going)] == [b"abcd", b"abc", b""]


def test_what_the_driver_gets_is_in_no_file(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=1)
    told = [reported(0, {"files": []})]
    assert files.written(told, partition=0) == told


def test_what_goes_on_goes_by_the_file_that_it_has(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=1)
    going = files.written(parcels(2, b"abcd"), partition=0)
    again = files.written([one.later(3) for one in files.read(going)], partition=1)
    assert again == [replace(going[0], stage=3)]
    assert len(list(tmp_path.rglob("*.arrow"))) == 1


def test_the_order_is_that_of_the_partitions_that_sent_them(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=1)
    one, other = (files.written(parcels(2, body), partition)[0] for partition, body in ((9, b"a"), (10, b"z")))
    assert one.head == other.head
    assert in_order([other, one]) == in_order([one, other]) == [one, other]


def test_of_equal_heads_one_body_may_be_in_a_file_and_the_other_not(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=4)
    (large,), (small,) = (files.written(parcels(2, body), at) for at, body in enumerate((b"abcd", b"abc")))
    assert large.head == small.head
    assert in_order([large, small]) == in_order([small, large])


def test_a_file_that_is_missing_is_named_with_a_remedy(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=1)
    going = files.written(parcels(2, b"abcd"), partition=0)
    files.remove()
    assert not list(tmp_path.rglob("*.arrow"))
    with pytest.raises(CheckpointError, match="is missing, which this step has written") as error:
        files.read(going)
    assert "every machine" in (error.value.remedy or "")


def test_a_sweep_takes_what_a_step_has_left(tmp_path: Path) -> None:
    files = ParcelFiles(FileStore(tmp_path), step=7, least=1)
    files.written(parcels(2, b"abcd"), partition=0)
    assert sweep(tmp_path, [manifest(6)]).files == 0, "the step may be running"
    assert sweep(tmp_path, [manifest(7)]).files == 1
