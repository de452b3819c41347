"""The exercise library: search, import, and publication to apps."""
