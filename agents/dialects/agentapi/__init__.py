"""The Agent API's wire (specs/agent-api.md): its models, builders, body and encoder; no rows, no I/O."""
