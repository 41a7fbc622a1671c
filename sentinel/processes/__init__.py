"""The processes behind the logs: which one writes a log, how it ended, and where its ranks stand.

Nothing is signalled, and below `/proc` nothing is opened through another process. What a process says of
itself (its name, arguments and environment) can be forged, so it is untrusted text; of the environment only
the names in `table.RANK_KEYS` leave this room.
"""
