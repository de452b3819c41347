"""Who changed what: one append-only table that every room may write to.

`watch` a model and each of its saves and deletions is recorded with what was before and after; what
is no save of a row (an activation, a key that was rotated, a conversation that was read) is told with
`record`.
"""
