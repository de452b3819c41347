"""What `manage.py doctor` looks at: settings, database, services, providers, and what is unsafe."""
