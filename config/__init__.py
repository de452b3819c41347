"""Settings, errors, authentication, logs and the processes of Parley."""

__version__ = "0.2.0"
