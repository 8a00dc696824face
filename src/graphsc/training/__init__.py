"""Training: the loop of every method, callbacks, checkpoints, distribution and model files."""
