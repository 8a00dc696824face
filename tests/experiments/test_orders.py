import numpy as np

from graphsc.paper.analyses import inner_orders_table
from graphsc.experiments.result import Result


def result(data, right, inner, selection="last", **protocol):
    """Ten graphs in one fold, `right` of them predicted right."""
    return Result(
        trial={
            "data": data, "method": "m", "selection": selection, "inductive": False, "training": {"seed": 0},
            "fold_seed": 0, "protocol": protocol,
        },
        config={}, classes=("0", "1"), labels=np.zeros(10, np.int64), fold=np.zeros(10, np.int64),
        predictions=np.where(np.arange(10) < right, 0, 1), chosen=(1.0,), epochs=(1,), inner_accuracy=inner,
        words="",
    )  # fmt: skip


def test_the_gap_is_averaged_by_data_and_order():
    found = inner_orders_table(
        [
            result("A", 8, 0.7),  # 10 points
            result("A", 8, 0.6),  # 20
            result("A", 8, 0.85, inner_order="shuffled"),  # -5
            result("A", 8, 0.1, inner_order="shuffled", label_share=0.1),  # judged otherwise, and left out
            result("A", 8, 0.1, selection="label-free"),
            result("B", 5, 0.5),
        ]
    )
    assert "| A | +15.0 | 2 | -5.0 | 1 |" in found
    assert "| B | +0.0 | 1 |  |  |" in found
