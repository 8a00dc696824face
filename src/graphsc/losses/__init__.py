"""What training minimises, and what watches it: pure functions on tensors that know nothing of graphs."""

from graphsc.losses.barlow_twins import BarlowForm, barlow_twins, mean_square
from graphsc.losses.contrastive import (
    Positives,
    Rivals,
    Search,
    independence,
    log_of_sum,
    nt_xent,
    nt_xent_floor,
    ordered_contrast,
    path_contrast,
    search_path,
    within_graphs,
)
from graphsc.losses.hsic import Kernel, Reduction, Samples, factor_dependence, hsic
from graphsc.losses.monitoring import (
    alignment,
    effective_rank,
    mean_cosine,
    nearer_share,
    retrieved_share,
    uniformity,
)
from graphsc.losses.mutual_information import area_under_curve, jensen_shannon, tell_apart
from graphsc.losses.reconstruction import code_error, root_mean_square
from graphsc.losses.supervised import masked_bce, masked_mse
from graphsc.losses.triplet import (
    Space,
    active_share,
    factor_weights,
    mask_factors,
    masked_first_layer,
    masked_triplet,
    split_factors,
    to_space,
    triplet,
)

__all__ = [
    "BarlowForm",
    "Kernel",
    "Positives",
    "Reduction",
    "Rivals",
    "Samples",
    "Search",
    "Space",
    "active_share",
    "alignment",
    "area_under_curve",
    "barlow_twins",
    "code_error",
    "effective_rank",
    "factor_dependence",
    "factor_weights",
    "hsic",
    "independence",
    "jensen_shannon",
    "log_of_sum",
    "mask_factors",
    "masked_bce",
    "masked_first_layer",
    "masked_mse",
    "masked_triplet",
    "mean_cosine",
    "mean_square",
    "nearer_share",
    "nt_xent",
    "nt_xent_floor",
    "ordered_contrast",
    "path_contrast",
    "retrieved_share",
    "root_mean_square",
    "search_path",
    "split_factors",
    "tell_apart",
    "to_space",
    "triplet",
    "uniformity",
    "within_graphs",
]
