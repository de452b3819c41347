"""The shell and the floor: settings, errors, auth, logs and the ways to start Parley."""
