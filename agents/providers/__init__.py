"""The model providers' streams: our own clients, because they are the hot path (DESIGN §10)."""
