"""Metrics: what analysts ask of what happened (issue 8). Rollups are written here and read here.

histograms      a latency in slots, and percentiles of them
rollup_sql      the statements that add up          rollups, keeping    when, and by whom
asked           a question in an address            reading, measures its answer, as rows
intervals       how sure one may be                 exports        rows as CSV, JSON, Parquet
"""
