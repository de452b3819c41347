"""Command-line agents as a runner: each run starts one program, reads its output, and ends it.

`options` reads a binding's config, `program` starts and ends the program, `output_lines` and
`printed_answer` read its output, `mcp_server` gives it the run's Host calls, `runner` combines these,
and `folder_cleanup` removes the folders of deleted conversations.
"""
