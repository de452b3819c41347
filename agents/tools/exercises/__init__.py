"""The exercise library: search, import, and publishing it to apps."""
