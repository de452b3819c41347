"""What the Host does for runners: one session a run, one door, one module a group of calls.

`session` makes every check and the audit; `deeds` says which coroutine does an action; `desk` lets a
wire in by a run's id; `serving` opens a session for a run and turns its runner's results into facts.
"""
