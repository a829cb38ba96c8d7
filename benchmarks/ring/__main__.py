"""`python -m benchmarks.ring`."""

import sys

from benchmarks.ring.command import main

sys.exit(main())
