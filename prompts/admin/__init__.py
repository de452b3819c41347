"""The pages on which staff write: prompts, endpoints, model mappings and settings.

A page shows and calls `prompts.actions`; none of them edits a published version or shows a key.
"""

from prompts.admin import app_settings, budgets, endpoints, mappings, prompts, quotas

__all__ = ["app_settings", "budgets", "endpoints", "mappings", "prompts", "quotas"]
