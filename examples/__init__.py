"""Short, complete programs."""
