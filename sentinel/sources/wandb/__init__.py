"""W&B's runs: its files on this machine, and those on a server."""
