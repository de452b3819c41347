"""What is sent to those who watch Parley: traces and metrics over OTLP."""
