"""Plans without a fixed tree: an eddy over SteMs, and an eddy whose join state is kept (JISC §3).

In: a lane, as for any operator, and a policy that picks the next hop. Out: each combination once, whatever the route.
"""
