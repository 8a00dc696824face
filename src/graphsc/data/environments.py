"""Counts of the atom environments of a batch of molecules, as in Morgan fingerprints, from its arrays alone.

The environment of radius r is an atom with its bonds and everything within r bonds of it: a Weisfeiler-Lehman
colour in which bonds have types. An environment of radius 0 is an atom's element with the types of its bonds,
and its charge where the nodes have a column of charges, which tells its hydrogens apart. Stereochemistry is
left out, as fingerprints do by default. Equal environments have equal hashes in every batch, on every machine
and device.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch

CHARGES = "charge"  # the column of nodes
_LARGEST = 2**63 - 1


def environment_counts(batch: GraphBatch, radius: int = 2, bits: int = 2048) -> Tensor:
    """How often each hashed environment occurs in each graph: G x bits, float32.

    Args:
        batch: Nodes whose first categorical column is the element; edges whose first one is the bond type.
        radius: The largest radius; environments of all radii from 0 are counted.
        bits: Columns; environments with equal hashes modulo `bits` share one.
    """
    if bits < 1:
        raise ConfigError(f"environments need at least one column, not {bits}")
    places = [(key & _LARGEST) % bits + batch.batch * bits for key in environment_keys(batch, radius)]
    counts = torch.bincount(torch.cat(places), minlength=batch.num_graphs * bits)
    return counts.view(batch.num_graphs, bits).float()


def environment_keys(batch: GraphBatch, radius: int = 2, *, charges: bool = True) -> list[Tensor]:
    """The hashes of the environments of all nodes for each radius from 0: N each, int64.

    Args:
        batch: As for `environment_counts`.
        radius: The largest radius.
        charges: Tell charges apart, where the nodes have a column of them.
    """
    if radius < 0:
        raise ConfigError(f"the radius of an environment must not be negative, not {radius}")
    if not batch.codes.shape[1]:
        raise DataError("environments need nodes with labels", hint="open molecules from SMILES")
    bonds = torch.zeros_like(batch.source, dtype=torch.int64)
    if batch.edge_codes is not None and batch.edge_codes.shape[1]:
        bonds = batch.edge_codes[:, 0]
    source = batch.source.long()
    around = _sums(hash64(bonds, 1), batch.rowptr)
    element = hash64(batch.codes[:, 0], 2)
    names = [column.name for column in batch.features.columns]
    if charges and CHARGES in names:  # a charge of zero has code 0, and changes nothing
        code = batch.codes[:, names.index(CHARGES)]
        element = torch.where(code > 0, element + hash64(code, 8), element)
    keys = [hash64(element + around, 3)]
    for step in range(1, radius + 1):
        before = keys[-1]
        neighbours = hash64(before.index_select(0, source) + hash64(bonds, 4), 5)
        keys.append(hash64(hash64(before, 6) + _sums(neighbours, batch.rowptr), 7 + step))
    return keys


def _sums(values: Tensor, rowptr: Tensor) -> Tensor:
    """The sum of the values of each row, modulo 2^64: a hash of a multiset of hashes."""
    total = values.new_zeros(len(values) + 1)
    torch.cumsum(values, 0, out=total[1:])
    return total[rowptr.long()].diff()


def hash64(numbers: Tensor, salt: int) -> Tensor:
    """A fixed 64-bit hash of int64 numbers: the steps of splitmix64, whose products wrap around."""
    mixed = (numbers + (salt << 40)) * -7046029254386353131
    mixed = (mixed ^ (mixed >> 30)) * -4658895280553007687
    mixed = (mixed ^ (mixed >> 27)) * -7723592293110705685
    return mixed ^ (mixed >> 31)
