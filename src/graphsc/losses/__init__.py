"""What training minimises, and what watches it: pure functions on tensors that know nothing of graphs."""

from graphsc.losses.absolute import BarlowForm, barlow_twins, mean_square
from graphsc.losses.factors import split_factors
from graphsc.losses.health import alignment, effective_rank, mean_cosine, uniformity
from graphsc.losses.hsic import Reduction, Samples, factor_dependence, hsic
from graphsc.losses.jsd import jensen_shannon
from graphsc.losses.kernel import Kernel
from graphsc.losses.masked import factor_weights, mask_factors, masked_first_layer, masked_triplet
from graphsc.losses.ntxent import nt_xent, nt_xent_floor
from graphsc.losses.ordered import ordered_contrast
from graphsc.losses.prototypes import Rivals, Search, path_contrast, search_path
from graphsc.losses.rationale import independence, log_of_sum
from graphsc.losses.reconstruction import code_error, root_mean_square
from graphsc.losses.space import Space, to_space
from graphsc.losses.tell_apart import area_under_curve, tell_apart
from graphsc.losses.triplet import active_share, triplet
from graphsc.losses.within import Positives, within_graphs

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
    "masked_first_layer",
    "masked_triplet",
    "mean_cosine",
    "mean_square",
    "nt_xent",
    "nt_xent_floor",
    "ordered_contrast",
    "path_contrast",
    "root_mean_square",
    "search_path",
    "split_factors",
    "tell_apart",
    "to_space",
    "triplet",
    "uniformity",
    "within_graphs",
]
