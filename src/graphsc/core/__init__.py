"""Errors, files, random numbers, registries and settings; no graphs, no models."""
