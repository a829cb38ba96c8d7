"""What is wrong with a checkpoint, and what would mend it: a family of checks a module, all of them in `CHECKS`."""

from midstream.pipeline.doctor.examination import CHECKS, Examined, examine
from midstream.pipeline.doctor.finding import Finding

__all__ = ["CHECKS", "Examined", "Finding", "examine"]
