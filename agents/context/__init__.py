"""Assemble what a model reads: system message, earlier messages, state and the request."""
