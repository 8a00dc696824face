"""Graph kernels: a collection in, similarities or counts of sub-structures out; NumPy and SciPy only."""
