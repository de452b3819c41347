"""Prompts and their versions: publishing, activating, comparing, importing and exporting."""
