"""Metrics: what analysts read of runs. Rollups are written here and read here.

histograms      a latency in slots, and its percentiles
rollup_sql      the statements that add up          rollups, refresh    when, and by whom
query           the question of an address          snapshot, measures  its answer, as rows
intervals       confidence intervals                exports, sheets     rows as CSV, JSON, Parquet
"""
