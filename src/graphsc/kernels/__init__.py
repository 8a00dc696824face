"""Graph kernels and document embeddings of graphs, in NumPy and without torch."""
