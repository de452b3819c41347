"""Helpers of the admin pages of all apps."""
