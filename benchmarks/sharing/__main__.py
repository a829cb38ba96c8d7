"""`python -m benchmarks.sharing`."""

import sys

from benchmarks.sharing.command import main

sys.exit(main())
