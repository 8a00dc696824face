"""How good vectors are: folds, probes, few labels, clusters. Arrays in, arrays out."""
