"""The way of a request into Parley: handler, admission, bodies, middleware and errors."""
