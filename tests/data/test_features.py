import json

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.features import CONSTANT, DEGREE, HIDDEN, recode, resolve_scheme

ATOM = Column("atom", 3, ("C", "N", "O"))
RING = Column("ring", 2)
FULL = FeatureTable.of(
    3, np.array([[0, 1], [1, 0], [2, 1]]), [ATOM, RING], np.zeros((3, 2)), ["charge", "mass"]
)
LABELS = FeatureTable.of(3, FULL.codes, [ATOM, RING])
FLOATS = FeatureTable.of(3, floats=np.zeros((3, 2)), float_names=["charge", "mass"])


@pytest.mark.parametrize(
    ("text", "name", "columns", "floats", "width"),
    [
        ("labels", "labels", (ATOM, RING), (), 5),
        ("degree", "degree", (Column(DEGREE, 65),), (), 65),
        ("degree:64", "degree", (Column(DEGREE, 65),), (), 65),
        ("degree:3", "degree:3", (Column(DEGREE, 4),), (), 4),
        ("constant", "constant", (Column(CONSTANT, 1),), (), 1),
        ("attributes", "attributes", (), ("charge", "mass"), 2),
        (
            "attributes + degree:1+labels",
            "attributes+degree:1+labels",
            (Column(DEGREE, 2), ATOM, RING),
            ("charge", "mass"),
            9,
        ),
    ],
)
def test_a_scheme_is_resolved_block_by_block(text, name, columns, floats, width):
    scheme = resolve_scheme(text, FULL)
    assert (scheme.name, scheme.columns, scheme.float_names) == (name, columns, floats)
    assert scheme.width == width


@pytest.mark.parametrize(
    ("nodes", "name"),
    [(FULL, "labels"), (LABELS, "labels"), (FLOATS, "attributes"), (FeatureTable.empty(3), "degree")],
)
def test_auto_takes_labels_then_attributes_then_degree(nodes, name):
    assert resolve_scheme("auto", nodes).name == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "unknown feature block ''"),
        ("label", "unknown feature block 'label'; join any of labels, degree"),
        ("labels,degree", "unknown feature block"),
        ("labels+", "unknown feature block ''"),
        ("Degree", "unknown feature block 'Degree'"),
        ("labels:3", "'labels' takes no number"),
        ("labels+labels", "'labels' appears twice"),
        ("degree+degree:3", "'degree' appears twice"),
        ("degree:3+degree:3", "'degree' appears twice"),
        ("degree:0", "degree cap must be a whole number"),
        ("degree:-1", "degree cap must be a whole number"),
        ("degree:1.5", "degree cap must be a whole number"),
        ("degree:100001", "degree cap must be a whole number"),
        ("degree:x", "degree cap must be a whole number"),
    ],
)
def test_a_scheme_that_cannot_be_read_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        resolve_scheme(text, FULL)


def test_labels_that_are_not_there_are_refused():
    with pytest.raises(DataError, match="no node labels; use features 'degree'"):
        resolve_scheme("labels", FLOATS)


def test_attributes_that_are_not_there_are_refused():
    with pytest.raises(DataError, match="no node attributes"):
        resolve_scheme("degree+attributes", LABELS)


def test_a_scheme_survives_json():
    stored = json.loads(json.dumps(resolve_scheme("labels+degree:3+attributes", FULL).to_json()))
    assert stored == {
        "name": "labels+degree:3+attributes",
        "columns": [["atom", 3, ["C", "N", "O"]], ["ring", 2, None], [DEGREE, 4, None]],
        "float_names": ["charge", "mass"],
        "degree_cap": 3,
    }


class TestDifferences:
    def test_equal_schemes_have_none(self):
        assert resolve_scheme("labels", FULL).differences(resolve_scheme("labels", LABELS)) == []

    def test_name_width_and_attributes_are_named_with_both_values(self):
        assert resolve_scheme("labels", FULL).differences(resolve_scheme("attributes", FULL)) == [
            "features 'labels' against 'attributes'",
            "categories (3, 2) against ()",
            "attributes () against ('charge', 'mass')",
        ]

    def test_another_meaning_of_the_same_width_is_named(self):
        other = FeatureTable.of(3, FULL.codes, [Column("atom", 3, ("C", "N", "S")), RING])
        assert resolve_scheme("labels", FULL).differences(resolve_scheme("labels", other)) == [
            "categories of the same number but another meaning"
        ]


class TestRecode:
    def scheme(self, *values):
        column = Column("atom", len(values), values)
        return resolve_scheme("labels+degree", FeatureTable.of(0, np.zeros((0, 1), int), [column]))

    def table(self, *values):
        distinct = tuple(sorted(set(values)))
        codes = np.array([[distinct.index(value)] for value in values])
        return FeatureTable.of(len(values), codes, [Column("atom", len(distinct), distinct)])

    def test_codes_are_matched_by_value(self):
        recoded = recode(self.table("O", "C", "O"), self.scheme("C", "N", "O"))
        assert recoded.codes.ravel().tolist() == [2, 0, 2]
        assert recoded.columns == (Column("atom", 3, ("C", "N", "O")),)

    def test_an_unknown_value_is_named(self):
        with pytest.raises(DataError, match="node label 'O' of 'atom' was never seen before"):
            recode(self.table("C", "O", "N"), self.scheme("C", "N"))

    def test_an_unknown_value_that_no_node_has_does_no_harm(self):
        table = FeatureTable.of(1, np.array([[0]]), [ATOM])
        assert recode(table, self.scheme("N", "C")).codes.tolist() == [[1]]

    def test_the_table_given_is_not_changed(self):
        table = self.table("O", "C")
        recode(table, self.scheme("X", "O", "C"))
        assert table.codes.ravel().tolist() == [1, 0]

    def test_floats_are_kept(self):
        table = FeatureTable.of(
            2, np.array([[0], [1]]), [Column("atom", 2, ("C", "O"))], np.array([[7.0], [8.0]])
        )
        assert recode(table, self.scheme("O", "C")).floats.ravel().tolist() == [7.0, 8.0]

    def test_a_scheme_without_labels_leaves_the_table_alone(self):
        table = self.table("O", "C")
        assert recode(table, resolve_scheme("degree", table)) is table

    def test_another_number_of_columns_is_refused(self):
        table = FeatureTable.of(2, np.array([[0, 1], [1, 0]]), [Column("element", 2), Column("charge", 2)])
        with pytest.raises(DataError, match="2 node label columns, 1 are needed"):
            recode(table, self.scheme("C", "N", "O"))

    def test_of_more_columns_those_of_the_scheme_are_found_by_name(self):
        columns = [Column("charge", 3), Column("atom", 2, ("N", "C"))]
        table = FeatureTable.of(2, np.array([[0, 0], [2, 1]]), columns)
        found = recode(table, self.scheme("C", "N", "O"))
        assert found.codes.tolist() == [[1], [0]]
        assert [column.name for column in found.columns] == ["atom"]

    def test_columns_without_values_are_matched_by_code(self):
        table = FeatureTable.of(2, np.array([[0], [1]]), [Column("atom", 2)])
        assert recode(table, self.scheme("C", "N", "O")).codes.ravel().tolist() == [0, 1]

    def test_more_categories_than_known_are_refused_where_values_are_not_known(self):
        table = FeatureTable.of(2, np.array([[0], [3]]), [Column("atom", 4)])
        with pytest.raises(DataError, match="have 4 categories, at most 2 are known"):
            recode(table, self.scheme("C", "N"))


def test_the_code_of_masked_nodes_is_found_by_its_value():
    atom = Column("atom", 3, ("C", HIDDEN, "O"))
    assert resolve_scheme("labels", FeatureTable.of(1, np.array([[0, 0]]), [atom, RING])).hidden == 1
    assert resolve_scheme("labels", LABELS).hidden is None
    assert resolve_scheme("attributes", FLOATS).hidden is None
