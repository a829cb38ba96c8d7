"""`python -m midstream`: the command line."""

from __future__ import annotations

import sys

from midstream_cli import main

if __name__ == "__main__":
    sys.exit(main())
