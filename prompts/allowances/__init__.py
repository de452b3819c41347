"""Tiers, quotas and budgets of accounts."""
