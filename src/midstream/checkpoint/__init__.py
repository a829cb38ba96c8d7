"""A job or an engine on disk, and how it stands: logs of manifests and commands, an engine's folder, the one report.

In: a folder, or a manifest to publish in it. Out: the newest manifest, any of those kept, the commands given since, and
the report that every face shows; a step is committed by one rename.
"""

# The import makes every kind of command that a manifest or a log may hold known to the codec.
from midstream import commands as commands
