"""Clients of the model providers' streams: our own, because they are the hot path (DESIGN §10)."""
