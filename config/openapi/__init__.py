"""The OpenAPI document, which the process makes when it is first asked for (`document.py`)."""
