"""Cards (uiSchema 2.0): compiled from hints, checked, and shown."""
