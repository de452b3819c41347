"""Endpoints of models: routing, keys and prices."""
