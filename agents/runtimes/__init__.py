"""Runners outside this process: plugin runtimes and command-line agents."""
