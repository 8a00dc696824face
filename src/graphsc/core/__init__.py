"""What every room stands on: errors, files, random numbers, names, settings. No graphs, no models."""
