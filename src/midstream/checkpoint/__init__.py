"""What a checkpoint is made of on disk: the logs of manifests and commands, and an engine's folder."""
