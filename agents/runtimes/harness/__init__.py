"""Command-line agents as a runner: each run is one program, started, heard, and ended with the run.

`options` says what a binding's config asks for, `program` starts and ends it, `output_lines` and
`printed_answer` read what it prints, `mcp_server` is the one through which it reaches the run's Host
calls, `runner` puts them together, `folder_cleanup` removes the folders of conversations that are gone.
"""
