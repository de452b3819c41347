"""The row of a run, and every statement that changes it."""
