"""The parts of a run: what is done to each contestant in each round."""
