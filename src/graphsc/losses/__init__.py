"""Loss functions and training diagnostics: pure functions on tensors, independent of graphs."""

from graphsc.losses.barlow_twins import barlow_twins, mean_squared_distance
from graphsc.losses.contrastive import (
    Negatives,
    Positives,
    Search,
    counterfactual_contrast,
    curriculum_contrast,
    independence,
    joint_rationale_loss,
    masked_node_contrast,
    nt_xent,
    nt_xent_floor,
    ordered_contrast,
    path_contrast,
    queue_contrast,
    search_path,
)
from graphsc.losses.hsic import factor_dependence, hsic
from graphsc.losses.monitoring import (
    alignment,
    effective_rank,
    mean_cosine,
    retrieval_accuracy,
    triplet_accuracy,
    uniformity,
)
from graphsc.losses.mutual_information import jensen_shannon, pair_bce, roc_auc
from graphsc.losses.nodes import margin_ranking, node_contrast
from graphsc.losses.reconstruction import gaussian_kl, one_hot_mse, rmse, scaled_cosine_error
from graphsc.losses.supervised import masked_bce, masked_mse
from graphsc.losses.triplet import (
    active_triplet_fraction,
    factor_weights,
    mask_factors,
    masked_first_layer,
    masked_triplet,
    normalise_embeddings,
    split_factors,
    triplet,
)

__all__ = [
    "Negatives",
    "Positives",
    "Search",
    "active_triplet_fraction",
    "alignment",
    "barlow_twins",
    "counterfactual_contrast",
    "curriculum_contrast",
    "effective_rank",
    "factor_dependence",
    "factor_weights",
    "gaussian_kl",
    "hsic",
    "independence",
    "jensen_shannon",
    "joint_rationale_loss",
    "margin_ranking",
    "mask_factors",
    "masked_bce",
    "masked_first_layer",
    "masked_mse",
    "masked_node_contrast",
    "masked_triplet",
    "mean_cosine",
    "mean_squared_distance",
    "node_contrast",
    "normalise_embeddings",
    "nt_xent",
    "nt_xent_floor",
    "one_hot_mse",
    "ordered_contrast",
    "pair_bce",
    "path_contrast",
    "queue_contrast",
    "retrieval_accuracy",
    "rmse",
    "roc_auc",
    "scaled_cosine_error",
    "search_path",
    "split_factors",
    "triplet",
    "triplet_accuracy",
    "uniformity",
]
