"""The Host's services for runners: one session per run, one door, one module per group of calls.

`session` makes every check and the audit; `actions` has the table of all handlers; `gateway` serves
calls from a wire by the id of their run; `runner_execution` opens a session for a run and converts its
runner's results into facts.
"""
