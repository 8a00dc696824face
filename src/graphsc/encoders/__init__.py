"""From graphs to vectors: GIN, readouts, the sparse kernel, and a place for any PyG module."""

from graphsc.encoders.balanced import BalancedReadout
from graphsc.encoders.embedding import embed, reestimate_batchnorm
from graphsc.encoders.foreign import PygEncoder
from graphsc.encoders.gin import Gin
from graphsc.encoders.molecule_gin import MoleculeGin
from graphsc.encoders.readout import pool
from graphsc.encoders.registry import ENCODERS
from graphsc.encoders.sparse import Adjacency, aggregate

__all__ = [
    "ENCODERS",
    "Adjacency",
    "BalancedReadout",
    "Gin",
    "MoleculeGin",
    "PygEncoder",
    "aggregate",
    "embed",
    "pool",
    "reestimate_batchnorm",
]
