"""The way of a request out of Parley: an outgoing proxy, and whose certificates are trusted."""
