"""One file a contestant. Each runs as a process of its own, in an environment that holds nobody else."""
