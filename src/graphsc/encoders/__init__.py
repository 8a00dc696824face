"""Graph encoders: GIN, the molecule GIN, others of PyG's layers, readouts, and a wrapper for PyG modules."""

from graphsc.core.lazy import export_lazily
from graphsc.encoders.base import ENCODERS, ignored_inputs, reads_edges
from graphsc.encoders.gin import Gin
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.encoders.message_passing import Gat, Gcn, Gine, Gps, GraphSage
from graphsc.encoders.molecule_gin import MoleculeGin
from graphsc.encoders.ops import Adjacency, aggregate
from graphsc.encoders.pyg import PygEncoder, as_encoder
from graphsc.encoders.readout import MultiScaleReadout, pool

__all__ = [
    "ENCODERS",
    "Adjacency",
    "Gat",
    "Gcn",
    "Gin",
    "Gine",
    "Gps",
    "GraphSage",
    "MoleculeGin",
    "MultiScaleReadout",
    "PygEncoder",
    "aggregate",
    "as_encoder",
    "embed",
    "ignored_inputs",
    "pool",
    "reads_edges",
    "reestimate_batchnorm",
]

export_lazily(__name__, {})  # so that `dir` lists these names and no others
