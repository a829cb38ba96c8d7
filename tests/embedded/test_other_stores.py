"""The contract of storages on Google Cloud and on Azure, by all their URLs, and an engine that is killed there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from midstream.storage import objects
from midstream.storage.objects import ObjectStorage
from midstream.storage.places import storage_at
from midstream.storage.process_resources import RESOURCES
from midstream.storage.storage_contract import Storage
from tests import azurite
from tests.embedded.test_kills import test_it_is_killed_on_an_object_store
from tests.google_storage import TOKEN, GoogleServer
from tests.object_server import BUCKET, free_port
from tests.unit.state.test_storage import (
    cache,
    test_a_damaged_copy_is_brought_anew,
    test_a_damaged_object_is_an_error,
    test_a_file_holds_what_was_written_last,
    test_a_file_that_is_not_there,
    test_every_name_that_a_checkpoint_has,
    test_files_and_when_they_were_changed,
    test_moving_files_and_folders,
    test_names_after_another,
    test_names_are_those_right_in_a_folder,
    test_of_many_who_create_a_file_one_does,
)

__all__ = [
    "cache",
    "test_a_damaged_copy_is_brought_anew",
    "test_a_damaged_object_is_an_error",
    "test_a_file_holds_what_was_written_last",
    "test_a_file_that_is_not_there",
    "test_every_name_that_a_checkpoint_has",
    "test_files_and_when_they_were_changed",
    "test_it_is_killed_on_an_object_store",
    "test_moving_files_and_folders",
    "test_names_after_another",
    "test_names_are_those_right_in_a_folder",
    "test_of_many_who_create_a_file_one_does",
]


GOOGLE = f"gs://{BUCKET}"
AZURE = (
    f"az://{azurite.CONTAINER}",
    f"abfs://{azurite.CONTAINER}",
    f"abfss://{azurite.CONTAINER}@{azurite.ACCOUNT}.dfs.core.windows.net",
)
SECRETS = {"GOOGLE_BEARER_TOKEN": TOKEN, "AZURE_STORAGE_ACCOUNT_KEY": azurite.KEY}
WRONG = "d3Jvbmc="


@pytest.fixture(scope="session")
def on_google() -> Iterator[Mapping[str, str]]:
    server = GoogleServer(free_port())
    server.start()
    yield server.environment
    server.stop()


@pytest.fixture(scope="session")
def on_azure() -> Iterator[Mapping[str, str]]:
    with azurite.server() as environment:
        yield environment


@pytest.fixture(params=(GOOGLE, *AZURE), ids=lambda url: url.partition(":")[0])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A part of the bucket that no other test has, found by its provider's environment alone."""
    environment: Mapping[str, str] = request.getfixturevalue("on_google" if request.param == GOOGLE else "on_azure")
    for name in objects._ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    RESOURCES.close()
    yield f"{request.param}/{abs(hash(request.node.nodeid)):x}"
    RESOURCES.close()


@pytest.fixture
def storage(bucket: str) -> Storage:
    return storage_at(f"{bucket}/root")


def test_the_secret_is_not_where_the_storage_goes(storage: Storage) -> None:
    assert isinstance(storage, ObjectStorage)
    assert not [secret for secret in SECRETS.values() if secret in repr(vars(storage)) + storage.url]


def test_a_wrong_secret_is_refused_and_said(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, WRONG)
    RESOURCES.close()
    status = "401 Unauthorized" if storage.url.startswith(GOOGLE) else "403 Forbidden"
    with pytest.raises(objects.WriteError, match=f"{status}.*credentials") as caught:
        storage.write("a", b"")
    assert WRONG not in str(caught.value)
