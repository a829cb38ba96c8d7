"""Plans without a fixed tree: an eddy over SteMs, and an eddy whose join state is kept."""
