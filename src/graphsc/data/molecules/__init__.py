"""Molecules: from SMILES to graphs as Hu et al. (2020) describe them, a few or millions."""
