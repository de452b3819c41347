"""What staff write: prompts and their versions, models and endpoints, settings, sealed keys."""
