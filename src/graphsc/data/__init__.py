"""Graph collections, batches, file readers and named data sets."""
