"""Every row of the benchmarks: what is compared with what, by which clock, and what is equal on both sides.

The module of the same name measures a row. The page shows these sentences beside its figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Row:
    """What a row compares, in words for the page."""

    ours: str
    against: str
    kind: Literal["peer", "floor", "self"]
    judged_by: Literal["wall", "cpu"]
    equal: str
    different: str
    long: bool = False


ROWS = {
    "sparse": Row(
        "sums over neighbours, forward and backward, 32 channels",
        "`GINConv`'s propagation in PyG on the same batch",
        "peer",
        "cpu",
        "batch, inputs, gradients; the sums are compared before timing",
        "our adjacency is built before timing, as PyG's edge list is",
    ),
    "encoder": Row(
        "GIN 3 x 32, forward and backward",
        "its matrix products alone",
        "floor",
        "cpu",
        "numbers of rows and channels",
        "the floor has no sums over neighbours, BatchNorm, ReLU or readout, and no first layer (a look-up)",
    ),
    "views": Row(
        "each view at rate 0.2",
        "one encoder pass, forward and backward, on that batch",
        "floor",
        "cpu",
        "batch",
        "every view gets a batch that no view has seen",
    ),
    "bridge": Row(
        "what a view of a PyG batch at rate 0.2 costs beyond the view itself: conversion and back, all keys",
        "the same view of a `GraphBatch`",
        "self",
        "cpu",
        "graphs, views, rate; on both sides the second view may use what the first one computed of its batch",
        "PyG's edges are sorted by source, ours by destination; each side draws its own views",
    ),
    "step": Row(
        "one training step of GraphSC: views, encoder, losses, backward, optimiser",
        "three encoder passes, forward and backward, on precomputed views",
        "floor",
        "cpu",
        "batch, encoder",
        "the floor has no views, heads, losses or optimiser",
    ),
    "epoch": Row(
        "GraphSC over ten batches",
        "the same computation written with PyG: `DataLoader`, transforms per graph, `GINConv`, "
        "`global_add_pool`; with 0 and with 2 loader workers",
        "peer",
        "cpu",
        "graphs, batch size, weights, optimiser; on the same views the losses agree to 1e-6 in 64 bits",
        "CPU time includes loader workers and our second thread; each side draws its own views",
    ),
    "methods": Row(
        "an epoch of every neural method (ten batches of NCI1, two of DD), with all it does between epochs",
        "the encoder passes of that epoch, and the heads that are applied to every node",
        "floor",
        "cpu",
        "batches, views, encoder, numbers of passes",
        "the floor has no views, losses or optimiser, and not AD-GCL's edge scores or RGCL's explainer",
    ),
    "pretrain": Row(
        "one GraphSC step of the [molecule encoder](encoder.md#molecules) on 256 molecules",
        "its matrix products alone in 32 bits, with one row per atom",
        "floor",
        "cpu",
        "molecules, layers, channels",
        "we compute equal atoms once, and in 16 bits where a case says so; the last floor has our rows",
    ),
    "transfer": Row(
        "one step of each pre-training of the transfer setting on 256 molecules, with views",
        "its encoder passes",
        "floor",
        "cpu",
        "molecules, views, encoder",
        "the floor has no views, heads, losses or optimiser",
    ),
    "probe": Row(
        "the [protocol](protocol.md) on embeddings of an untrained encoder, 2 of 10 folds",
        "`GridSearchCV(SVC())` on the same folds",
        "peer",
        "cpu",
        "embeddings, outer and inner folds, grid, one job; predictions are compared",
        "our solver follows the grid in one path",
    ),
    "embed": Row(
        "20,000 SMILES to embeddings with the model `graphsc-moses`, one core",
        "ECFP fingerprints of the same SMILES by RDKit",
        "floor",
        "cpu",
        "molecules, one thread; both parse each SMILES with RDKit and end in one array",
        "the model is loaded before timing",
    ),
    "graph2vec": Row(
        "graph2vec, with learned rows and by default: inferred rows, no down-sampling of frequent words",
        "Graph2Vec as the Karate Club library computes it: NetworkX graphs, md5 strings as words, gensim's "
        "`Doc2Vec`",
        "peer",
        "cpu",
        "graphs, labels, dimensions, rounds, epochs, one thread; down-sampling except in the last case",
        "the peer is written anew, without the library's checks of its input; its default down-samples",
    ),
    "molecules": Row(
        "50,000 SMILES to a collection file, two processes",
        "RDKit's `MolFromSmiles` alone, in two processes",
        "floor",
        "wall",
        "molecules, number of processes; both start them on the clock",
        "the floor keeps and writes nothing",
    ),
    "cluster": Row(
        "12 trials on MUTAG by a Dask scheduler with two workers",
        "the same trials by two local joblib processes",
        "self",
        "wall",
        "trials, threads, number of processes; the results are compared",
        "both kinds of workers are started and warm before timing",
    ),
    "ranks": Row(
        "an epoch of pre-training of the molecule encoder by two processes of one thread each",
        "the same by one process of one thread",
        "self",
        "wall",
        "molecules, batch size, one core per process",
        "starting the processes is not timed",
    ),
    "growth": Row(
        "time and memory per graph, with 10,000 and 100,000 graphs",
        "the same with 1,000",
        "self",
        "cpu",
        "generator of graphs, batch size, thirty batches at most",
        "memory is what the collection holds; the peak of a process is mostly that of its libraries",
    ),
    "start": Row(
        "`graphsc --help`, `graphsc data check mutag`",
        '`python -c "import numpy"`',
        "floor",
        "cpu",
        "interpreter",
        "each call is a new process",
    ),
    "read": Row(
        "`COLLAB.zip` to a saved collection: time and peak memory; opening it again",
        "PyG's reader on the unpacked folder; half a second",
        "peer",
        "wall",
        "graphs; each side in a process of its own",
        "the peer reads an unpacked folder and saves nothing; imports are not timed",
        long=True,
    ),
    "wl": Row(
        "the WL Gram matrix of REDDIT-BINARY and of COLLAB, five rounds from degrees",
        "GraKeL's `WeisfeilerLehman`",
        "peer",
        "cpu",
        "graphs, rounds, one thread; the matrices agree to 1e-6",
        "the time to prepare GraKeL's input is not counted",
        long=True,
    ),
    "whole": Row(
        "the complete NCI1 experiment: load, train 20 epochs, embed, evaluate on 10 folds, one seed",
        "the same with PyG as in `epoch`, and `GridSearchCV(SVC())`",
        "peer",
        "cpu",
        "graphs, random initialisation, epochs, folds, grid",
        "each side draws its own views; no loader workers, which would cost the peer CPU time",
        long=True,
    ),
}
