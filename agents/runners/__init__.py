"""Producers of events: the model-driven runner and the offline one."""
