"""Graph kernels and document embeddings: a collection in, similarities, counts or vectors out; no torch."""
