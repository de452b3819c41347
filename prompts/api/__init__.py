"""REST views of models, prompts and settings."""
