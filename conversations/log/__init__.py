"""The event log: append, read, follow and fold the events of runs."""
