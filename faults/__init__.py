"""Faults on purpose: kills, mutated files and heavy loads, with the figures of what they found."""
