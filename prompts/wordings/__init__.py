"""Prompts and their versions: saving, activating, comparing, importing and exporting."""
