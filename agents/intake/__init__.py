"""Make an accepted run of a parsed request body, and go on with one that waits."""
