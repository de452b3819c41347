"""Knowledge bases: reading uploads, cutting them into chunks, finding chunks by words and by meaning."""
