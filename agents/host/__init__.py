"""What the Host does for runners: one session per run, one door, one module per group of calls.

`session` makes every check and the audit; `actions` holds the table that the handlers make;
`gateway` lets a wire in by the id of a run; `hosted_run` opens a session for a run and turns the results
of its runner into facts.
"""
