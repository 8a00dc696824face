"""Molecules: SMILES strings to graphs with the features of Hu et al. (2020)."""
