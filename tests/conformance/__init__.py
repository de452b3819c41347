"""What the seeds require: a row per requirement, its state, and the tests that show it."""
