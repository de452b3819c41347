"""Users, long-lived API tokens and bearer authentication (specs/text-run.md §6)."""
