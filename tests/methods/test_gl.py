"""The graphlet kernel: its values by hand."""

import numpy as np

from graphsc.methods.gl import Graphlets


def test_kernel_by_hand(make):
    paw = [(0, 1), (1, 2), (2, 0), (2, 3)]
    wedge = [(0, 1), (1, 2)]
    # Of size three: a triangle and two wedges, one wedge. Of size four: one paw, nothing.
    kernel = Graphlets().fit(make([(4, paw), (3, wedge)]), 0)
    expected = (2 / 3) / (1 / 9 + 4 / 9 + 1) ** 0.5
    np.testing.assert_allclose(kernel, [[1, expected], [expected, 1]], rtol=1e-6)
