"""Claim runs and execute them."""
