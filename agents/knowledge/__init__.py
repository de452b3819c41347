"""Knowledge bases: read uploads, cut them into chunks, and find chunks by words and by meaning."""
