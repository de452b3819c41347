"""Admin, the API's pages and the chat in a real Chromium."""
