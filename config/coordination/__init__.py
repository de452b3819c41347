"""What processes tell and count together: in memory, through PostgreSQL or through Redis.

The setting COORDINATION chooses. Nothing here carries truth: what gets lost is found again by a poll, or
counted anew.
"""
