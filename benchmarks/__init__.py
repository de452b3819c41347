"""`make bench`: how fast Parley starts runs and streams their tokens, with the model taken out."""
