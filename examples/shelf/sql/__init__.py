"""The shelf's statements."""
