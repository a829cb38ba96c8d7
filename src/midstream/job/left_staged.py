"""What is left in the staging of an output that nobody will commit."""

from __future__ import annotations

from midstream.model.manifest import Manifest
from midstream.sinks import Staging
from midstream.sinks.contract import step_of


def clear_former(staging: Staging, manifest: Manifest) -> None:
    """Remove what drivers of epochs before the manifest's have staged."""
    former = {epoch.token for epoch in manifest.epochs[:-1]}
    for folder in staging.storage.names():
        if folder.partition(".")[0] in former:
            staging.storage.remove_folder(folder)


def clear_later(staging: Staging, manifest: Manifest) -> None:
    """Remove what drivers of the manifest's time line have staged of later steps."""
    tokens = {epoch.token for epoch in manifest.epochs}
    for token in tokens & set(staging.storage.names()):
        for folder in staging.storage.names(token):
            if step_of(folder) > manifest.step:
                staging.storage.remove_folder(f"{token}/{folder}")
