"""The addresses of conversations: threads, attachments, feedback and metrics."""
