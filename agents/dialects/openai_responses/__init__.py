"""OpenAI's Responses wire: its body, its response object and its events; no rows, no I/O."""
