"""The console script. It lies outside the package, whose import takes most of a second."""

from __future__ import annotations

import os
import signal


def main() -> int:
    """Run one command and return its exit code. An interrupt ends it with 130, also while modules are imported."""
    interrupted, interruptible = 130, signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        # Any module may catch or print a KeyboardInterrupt amid its import; and there is nothing to clean up yet.
        signal.signal(signal.SIGINT, lambda *_: os._exit(interrupted))
    from midstream.cli.main import main as run_command

    try:
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return run_command()
    except KeyboardInterrupt:
        return interrupted
