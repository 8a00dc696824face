"""Clusters against known classes and against a case computed by hand."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.clustering import clustering_quality


def test_clouds_far_apart_are_found(clouds):
    values, labels = clouds((30, 40, 20), apart=30.0)
    quality = clustering_quality(values, labels)
    assert quality["clusters"] == 3
    assert quality["nmi"] == pytest.approx(1.0)
    assert quality["ari"] == pytest.approx(1.0)
    assert quality["silhouette"] > 0.8


def test_random_classes_do_not_agree_with_clusters(clouds):
    values, labels = clouds((150, 150), apart=30.0)
    quality = clustering_quality(values, np.random.default_rng(1).permutation(labels))
    assert abs(quality["ari"]) < 0.05
    assert quality["nmi"] < 0.05


def test_silhouette_by_hand():
    # Two pairs on a line: within a pair 1 apart, other pair's mean distance 10.5 or 9.5.
    quality = clustering_quality(np.array([[0.0], [1.0], [10.0], [11.0]]), clusters=2)
    assert quality["silhouette"] == pytest.approx(((1 - 1 / 10.5) + (1 - 1 / 9.5)) / 2)
    assert set(quality) == {"clusters", "silhouette"}


def test_names_of_classes_do_not_matter(clouds):
    values, labels = clouds((30, 40), apart=2.0)
    named = np.array(["b", "a"])[labels]
    assert clustering_quality(values, named)["nmi"] == clustering_quality(values, labels)["nmi"]


def test_the_number_of_clusters_can_be_given(clouds):
    values, labels = clouds((30, 40))
    assert clustering_quality(values, labels, clusters=5)["clusters"] == 5


def test_the_same_seed_gives_the_same(clouds):
    values, labels = clouds((50, 50, 50), apart=0.3)
    assert clustering_quality(values, labels, seed=4) == clustering_quality(values, labels, seed=4)


def test_constant_vectors_are_one_cluster():
    quality = clustering_quality(np.ones((20, 3)), np.arange(20) % 2)
    assert quality == {"clusters": 2, "silhouette": 0, "nmi": 0, "ari": 0}


def test_invalid_inputs_are_refused():
    with pytest.raises(ConfigError, match="give clusters, or labels"):
        clustering_quality(np.eye(4))
    with pytest.raises(ConfigError, match="4 clusters of 4 graphs"):
        clustering_quality(np.eye(4), clusters=4)
    with pytest.raises(DataError, match="3 labels"):
        clustering_quality(np.eye(4), [0, 1, 1])
    with pytest.raises(DataError, match="NaN"):
        clustering_quality(np.full((4, 1), np.nan), clusters=2)
