"""What happened: threads, messages, runs, the event log and every reading of it."""
