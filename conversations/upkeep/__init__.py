"""Periodic work on stored conversations: partitions, folding, retention and erasing."""
