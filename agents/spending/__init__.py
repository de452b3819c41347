"""Budgets, and what each model call used and cost."""
