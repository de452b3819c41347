"""Metrics of runs for analysts: the rollups are written and read here.

histograms      latencies in slots, percentiles     intervals           confidence intervals
rollup_sql      the statements that add up          rollups, refresh    when and by whom they run
query           the query of a request              snapshot, measures  its result, as rows
sheets          the tables that REST offers         exports             rows as CSV, JSON lines, Parquet
"""
