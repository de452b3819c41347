"""Metrics of runs for analysts: the rollups are written and read here.

dimensions      what runs are grouped by            measures            what is counted of them
histograms      latencies in slots, percentiles     intervals           confidence intervals
rollup_sql      the statements that add up          rollups, refresh    when and by whom they run
query           the query of a request              query_sql, snapshot its statements and its result
sheets          the tables that REST offers         exports             rows as CSV, JSON lines, Parquet
"""
