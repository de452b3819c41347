"""What a runner may call: exercise search, web search and whatever else the registry lists."""
