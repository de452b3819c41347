"""Command-line agents as a runner: each run is one program, started, heard, and ended with the run.

`wanted` says what a binding's config asks for, `program` starts and ends it, `said` and `answer` read
what it prints, `offered` is the MCP server through which it reaches the run's Host calls, `runner` puts
them together, `tidying` removes the folders of conversations that are gone.
"""
