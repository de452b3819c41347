"""The addresses of agents: each module has the views of one resource or one protocol."""
