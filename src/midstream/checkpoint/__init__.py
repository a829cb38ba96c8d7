"""A job or an engine on disk: the log of manifests, the log of commands, an embedded engine's folder.

In: a folder, or a manifest to publish in it. Out: the newest manifest, any of those kept, the commands given since; a
step is committed by one rename.
"""
