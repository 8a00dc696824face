"""Named public data sets: the catalogue, downloads, and molecules from the Python package index."""
