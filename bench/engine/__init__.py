"""Rota's engine beside its peers: see bench/README.md."""
