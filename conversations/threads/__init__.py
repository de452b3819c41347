"""Threads, their messages, history, search and feedback: what people find again."""
