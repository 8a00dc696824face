"""What a fitted method is: kernels and document embeddings, learned from a collection in one go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection

Rows = NDArray[np.float32]
Arrays = Mapping[str, NDArray[Any]]


class FittedMethod:
    """A method without training steps.

    Subclasses take typed keywords, which are the configuration. Registered as `fitted`, its rows are
    vectors; registered as `gram`, they are kernel values against the graphs it was fitted on, one column
    each, as scikit-learn's precomputed kernels have them.
    """

    inductive: ClassVar[bool] = True  # False: only the graphs it was fitted on have rows

    def fit(self, collection: GraphCollection, seed: int) -> Rows:
        """Learn from the collection and give its own rows; the seed decides every draw."""
        raise NotImplementedError

    def transform(self, collection: GraphCollection) -> Rows:
        """Rows for any graphs, comparable with those of `fit`."""
        raise NotImplementedError

    def dimensions(self) -> int:
        """The length of a row; known once fitted."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """All that `transform` needs, as arrays of numbers."""
        raise NotImplementedError

    def load_state(self, state: Arrays) -> None:
        """Put back what `state` gave."""
        raise NotImplementedError
