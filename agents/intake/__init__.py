"""The intake of runs: a parsed body becomes an accepted run, and a waiting run continues."""
