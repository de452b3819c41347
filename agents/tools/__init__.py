"""The tools of runners: exercise search, web search, and the other tools of the registry."""
