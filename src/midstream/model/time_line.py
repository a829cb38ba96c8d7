"""Whose steps they are: the epochs in which drivers wrote a checkpoint, one after the other.

A step number alone says little: two drivers may both have done a step 7, as may one job before and after it went back,
or before and after its checkpoint was restored from a backup. So whatever a step leaves behind (manifest, chunks,
events, results) carries the job and the epoch it was made in, and nothing of another time line is taken for one's own.
"""

from __future__ import annotations

from dataclasses import dataclass

EPOCHS_KEPT = 100
"""How many epochs a manifest remembers; steps of those that are forgotten are taken for the job's own."""


@dataclass(frozen=True)
class Epoch:
    """The time in which one driver writes a checkpoint, from step `since` on.

    Epochs of a checkpoint are numbered from 1 on. `token` is random, for a checkpoint that was restored from a backup
    gives the same number again. `abandoned` is the last step that was given up when the epoch began, where the job went
    back, and `oldest` the oldest one that was kept then: what is there of an older one has come late.
    """

    number: int
    token: str
    since: int
    abandoned: int | None = None
    oldest: int | None = None


@dataclass(frozen=True)
class Stamp:
    """What made something: a step of a job, and the token of the epoch it was done in."""

    job: str
    epoch: str
    step: int


@dataclass(frozen=True)
class TimeLine:
    """The steps of a job, each with the epoch it counts in.

    >>> line = TimeLine("j", (Epoch(1, "a", 0), Epoch(2, "b", 4, abandoned=6)))
    >>> line.stamp(3), line.stamp(4)
    (Stamp(job='j', epoch='a', step=3), Stamp(job='j', epoch='b', step=4))
    >>> line.has(Stamp("j", "a", 3)), line.has(Stamp("j", "a", 5)), line.gave_up(Stamp("j", "a", 5))
    (True, False, True)
    """

    job: str
    epochs: tuple[Epoch, ...] = ()

    def epoch_of(self, step: int) -> Epoch | None:
        """Return the epoch in which a step counts; None for a step before all that are remembered."""
        return next((epoch for epoch in reversed(self.epochs) if epoch.since <= step), None)

    def stamp(self, step: int) -> Stamp:
        """Return the stamp of what a step leaves."""
        epoch = self.epoch_of(step)
        return Stamp(self.job, epoch.token if epoch else "", step)

    def has(self, stamp: Stamp) -> bool:
        """Return whether a stamp belongs to a step that counts."""
        epoch = self.epoch_of(stamp.step)
        return stamp.job == self.job and (epoch is None or epoch.token == stamp.epoch)

    def gave_up(self, stamp: Stamp) -> bool:
        """Return whether a stamp belongs to a former epoch's step that the job gave up when it went back.

        Of an epoch that is not on the time line it is not: that may be a later one than this driver knows of.
        """
        tokens = [epoch.token for epoch in self.epochs]
        if stamp.job != self.job or self.has(stamp) or stamp.epoch not in tokens:
            return False
        later = self.epochs[tokens.index(stamp.epoch) + 1 :]
        return any(e.abandoned is not None and e.since <= stamp.step <= e.abandoned for e in later)

    def after(self, epoch: Epoch) -> TimeLine:
        """Add an epoch to the time line.

        Of too many epochs those are forgotten first in which no step was done: a job may be started a hundred times
        before there is something to do, and must still know whose its newest step is.
        """
        epochs = [*self.epochs, epoch]
        while len(epochs) > EPOCHS_KEPT:
            del epochs[next((place for place in range(len(epochs) - 1) if _is_idle(epochs, place)), 0)]
        return TimeLine(self.job, tuple(epochs))


def _is_idle(epochs: list[Epoch], place: int) -> bool:
    # No step counts in the epoch, and none was given up when it began.
    one = epochs[place]
    return one.abandoned is None and min(later.since for later in epochs[place + 1 :]) <= one.since
