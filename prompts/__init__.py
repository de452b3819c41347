"""The configuration by staff: prompts, models, endpoints, settings and sealed keys."""
