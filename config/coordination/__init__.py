"""Communication and shared counts between processes, through Redis if there are several."""
