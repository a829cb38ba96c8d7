"""`python -m benchmarks.nexmark`."""

import sys

from benchmarks.nexmark.command import main

if __name__ == "__main__":
    sys.exit(main())
