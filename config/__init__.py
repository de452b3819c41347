"""Settings, errors, authentication, logs and the processes of Parley."""
