"""`python -m benchmarks.plan_change`."""

import sys

from benchmarks.plan_change.command import main

sys.exit(main())
