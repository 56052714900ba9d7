"""The engine's tables, and the verbs of a run's life on them."""
