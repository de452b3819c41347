"""Admin pages of prompts, endpoints, model mappings and settings.

Pages display data and call `prompts.wordings.staff_actions`; none changes a version or shows
a key.
"""

from prompts.admin import app_settings, budgets, endpoints, mappings, prompts, quotas

__all__ = ["app_settings", "budgets", "endpoints", "mappings", "prompts", "quotas"]
