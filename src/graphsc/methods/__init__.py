"""Graph representation learning methods by name; one module per method, registered when it is imported."""

from graphsc.core.lazy import export_lazily
from graphsc.methods.adgcl import ADGCL
from graphsc.methods.attrmasking import AttrMasking
from graphsc.methods.base import Player, Pretext, TrainedMethod
from graphsc.methods.baselines import Raw, Untrained, UntrainedPlus
from graphsc.methods.bgrl import BGRL
from graphsc.methods.cgc import CGC
from graphsc.methods.contextpred import ContextPred
from graphsc.methods.contrastive import projection
from graphsc.methods.cuco import CuCo
from graphsc.methods.dgk import DeepGraphKernel
from graphsc.methods.edgepred import EdgePred
from graphsc.methods.fitted import FittedMethod
from graphsc.methods.gca import GCA
from graphsc.methods.gcc import GCC
from graphsc.methods.gic import GIC
from graphsc.methods.gl import Graphlets
from graphsc.methods.grace import GRACE
from graphsc.methods.graph2vec import Graph2Vec
from graphsc.methods.graphcl import GraphCL
from graphsc.methods.graphlog import GraphLoG
from graphsc.methods.graphmae import GraphMAE
from graphsc.methods.graphsc import GraphSC
from graphsc.methods.graphsc_plus import GraphSCPlus
from graphsc.methods.infograph import InfoGraph
from graphsc.methods.infomax import Infomax
from graphsc.methods.joao import JOAO
from graphsc.methods.lagraph import LaGraph
from graphsc.methods.mvgrl import MVGRL
from graphsc.methods.progcl import ProGCL
from graphsc.methods.registry import (
    METHODS,
    AnyMethod,
    MethodEntry,
    Recipe,
    make_recipe,
    training_settings,
    trains,
)
from graphsc.methods.rgcl import RGCL
from graphsc.methods.simgrace import SimGRACE
from graphsc.methods.sub2vec import Sub2Vec
from graphsc.methods.subgcon import SubgCon
from graphsc.methods.vgae import VGAE
from graphsc.methods.wl import WeisfeilerLehman

__all__ = [
    "ADGCL",
    "BGRL",
    "CGC",
    "GCA",
    "GCC",
    "GIC",
    "GRACE",
    "JOAO",
    "METHODS",
    "MVGRL",
    "RGCL",
    "VGAE",
    "AnyMethod",
    "AttrMasking",
    "ContextPred",
    "CuCo",
    "DeepGraphKernel",
    "EdgePred",
    "FittedMethod",
    "Graph2Vec",
    "GraphCL",
    "GraphLoG",
    "GraphMAE",
    "GraphSC",
    "GraphSCPlus",
    "Graphlets",
    "InfoGraph",
    "Infomax",
    "LaGraph",
    "MethodEntry",
    "Player",
    "Pretext",
    "ProGCL",
    "Raw",
    "Recipe",
    "SimGRACE",
    "Sub2Vec",
    "SubgCon",
    "TrainedMethod",
    "Untrained",
    "UntrainedPlus",
    "WeisfeilerLehman",
    "make_recipe",
    "projection",
    "training_settings",
    "trains",
]

export_lazily(__name__, {})  # so that `dir` lists these names and no others
