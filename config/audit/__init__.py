"""The audit log: one append-only table for all apps.

`watch` a model to record each of its saves and deletions with the values before and after. Use
`record` for other actions (an activation, the rotation of a key, reading a conversation).
"""
