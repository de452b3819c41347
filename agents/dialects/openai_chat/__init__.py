"""OpenAI's Chat Completions wire: its body, its completion object and its chunks; no rows, no I/O."""
