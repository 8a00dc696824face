"""Public data sets by name: the catalogue, downloads, and molecules from the package index."""
