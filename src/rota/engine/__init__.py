"""The engine: one loop a file, each with `run_once()`."""
