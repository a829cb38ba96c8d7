"""`python -m benchmarks.optimizer`."""

import sys

from benchmarks.optimizer.command import main

sys.exit(main())
