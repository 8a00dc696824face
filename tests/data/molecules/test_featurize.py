"""Features of molecules, worked out by hand and by a loop over RDKit's atoms and bonds."""

import numpy as np
import pytest

from graphsc.data.arrays import pointer
from graphsc.data.molecules.featurize import ATOM, BOND, CHARGE, CHIRALITY, DIRECTION, HYDROGENS, featurize

Chem = pytest.importorskip("rdkit.Chem")

C, N, O, F = 5, 6, 7, 8  # codes are atomic numbers minus one  # noqa: E741
SINGLE, DOUBLE, TRIPLE, AROMATIC = range(4)


def one(smiles):
    """Atoms as (type, chirality), edges as (source, destination, type, direction) in stored order."""
    found = featurize([smiles])
    assert found.rejected == []
    edges = np.column_stack([found.source, found.destination, found.bonds])
    return [tuple(row) for row in found.atoms[:, :2].tolist()], [tuple(row) for row in edges.tolist()]


class TestByHand:
    def test_ethanol(self):
        atoms, edges = one("CCO")
        assert atoms == [(C, 0), (C, 0), (O, 0)]
        assert edges == [
            (1, 0, SINGLE, 0), (0, 1, SINGLE, 0), (2, 1, SINGLE, 0), (1, 2, SINGLE, 0)
        ]  # fmt: skip

    def test_benzene_is_six_aromatic_bonds_both_ways(self):
        atoms, edges = one("c1ccccc1")
        assert atoms == [(C, 0)] * 6
        ring = {(i, (i + 1) % 6) for i in range(6)}
        assert {edge[:2] for edge in edges} == ring | {(b, a) for a, b in ring}
        assert {edge[2:] for edge in edges} == {(AROMATIC, 0)}
        assert len(edges) == 12

    def test_kinds_of_bonds(self):
        _, edges = one("C#CC=O")
        assert {edge[:3] for edge in edges if edge[0] < edge[1]} == {
            (0, 1, TRIPLE), (1, 2, SINGLE), (2, 3, DOUBLE)
        }  # fmt: skip

    @pytest.mark.parametrize(("smiles", "tag"), [("C[C@@H](O)N", 1), ("C[C@H](O)N", 2), ("CC(O)N", 0)])
    def test_chiral_centre(self, smiles, tag):
        assert one(smiles)[0] == [(C, 0), (C, tag), (O, 0), (N, 0)]

    def test_chirality_mark_on_an_achiral_centre_is_unspecified(self):
        assert {tag for _, tag in one("C[C@](C)(O)C")[0]} == {0}

    def test_square_plane_is_another_kind_of_chirality(self):
        atoms, _ = one("C[Pt@SP1](F)(Cl)Br")
        assert atoms[1] == (77, 3)

    @pytest.mark.parametrize(
        ("smiles", "directions"),
        [("F/C=C/F", (1, 0, 1)), ("F/C=C\\F", (1, 0, 2)), ("FC=CF", (0, 0, 0))],
        ids=["E", "Z", "unsaid"],
    )
    def test_directions_beside_a_double_bond_are_the_same_both_ways(self, smiles, directions):
        _, edges = one(smiles)
        found = {edge[:2]: edge[3] for edge in edges}
        assert tuple(found[i, i + 1] for i in range(3)) == directions
        assert tuple(found[i + 1, i] for i in range(3)) == directions

    def test_lone_atom_has_no_edge(self):
        atoms, edges = one("[Na+]")
        assert (atoms, edges) == ([(10, 0)], [])

    def test_salt_is_one_graph_of_two_parts(self):
        assert [edge[:2] for edge in one("[Na+].CO")[1]] == [(2, 1), (1, 2)]

    def test_first_and_last_element(self):
        assert one("[H][H]")[0] == [(0, 0)] * 2
        assert one("[Og]")[0] == [(117, 0)]

    def test_dummy_atom_has_a_category_of_its_own(self):
        assert one("*CO")[0] == [(118, 0), (C, 0), (O, 0)]
        assert ATOM.values[118] == "*"

    def test_hydrogens_that_rdkit_removes_are_not_there_and_isotopes_are(self):
        assert one("[H]C([H])O")[0] == [(C, 0), (O, 0)]
        assert one("C[2H]")[0] == [(C, 0), (0, 0)]

    @pytest.mark.parametrize("smiles", ["N->[Fe]", "[Fe]<-N", "C~C", "C$C"])
    def test_other_kinds_of_bonds_are_single_both_ways_and_counted(self, smiles):
        found = featurize([smiles])
        assert found.bonds.tolist() == [[SINGLE, 0]] * 2
        assert (found.source.tolist(), found.destination.tolist()) == ([1, 0], [0, 1])
        assert found.other_bonds == 1


def test_meaning_of_codes():
    assert (ATOM.values[C], ATOM.values[N], ATOM.values[34], ATOM.values[117]) == ("C", "N", "Br", "Og")
    assert [column.cardinality for column in (ATOM, CHIRALITY, BOND, DIRECTION)] == [120, 4, 4, 3]
    assert [column.cardinality for column in (CHARGE, HYDROGENS)] == [6, 5]


# Each of these takes another way through the code: tokens, brackets, aromatic brackets, two-letter
# elements, ring numbers of two digits, stereo, removed hydrogens, extensions, metals, dative bonds.
VARIED = [
    "CCO", "c1cc[nH]c1", "[nH]1cccc1Cl", "BrC%10CCCC%10", "C1CC1[C@H](F)Cl", "O=C([O-])c1ccccc1[N+](C)(C)C",
    "F/C=C/C=C\\[Si](C)(C)C", "[H]C([H])([H])[C@@]([H])(O)F", "[13CH4]", "[CH3:7][OH:12]", "[se]1cccc1",
    "N->[Fe]<-N", "[Cu]", "*c1ccccc1*", "C[C@H]1CC[C@@H](C/C=C\\C)O1 |r|", "CCO ethanol",
    "CC1=C2C(=O)N3[Zn]N(C1)C23", "C1=CNC=C1", "CN(=O)=O", "[K+].[O-][Cl](=O)=O", "CP(=O)(O)O",
    "C[N+](C)=[N-]", "c1ccc2c(c1)[nH]c1ccccc12", "O=C1C=CC(=O)C=C1", "[CH3]", "[Al+3]", "CN=[N+]=[N-]",
    "O=c1cc[nH]cc1", "C=P(C)(C)C", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "OS(=O)(=O)O", "C" * 260,
]  # fmt: skip


def by_loop(smiles):
    """The same, asked of RDKit atom by atom and bond by bond."""
    molecule = Chem.MolFromSmiles(smiles)
    names = {"SINGLE": 0, "DOUBLE": 1, "TRIPLE": 2, "AROMATIC": 3}
    ways = {"ENDUPRIGHT": 1, "ENDDOWNRIGHT": 2}
    tags = {"CHI_UNSPECIFIED": 0, "CHI_TETRAHEDRAL_CW": 1, "CHI_TETRAHEDRAL_CCW": 2}
    charges = ["0", "+1", "-1", "+2", "-2"]
    atoms = []
    for atom in molecule.GetAtoms():
        charge = f"{atom.GetFormalCharge():+d}" if atom.GetFormalCharge() else "0"
        number, tag = atom.GetAtomicNum(), tags.get(str(atom.GetChiralTag()), 3)
        code = charges.index(charge) if charge in charges else 5
        atoms.append((number - 1 if number else 118, tag, code, min(atom.GetTotalNumHs(), 4)))
    edges = []
    for bond in molecule.GetBonds():
        what = (names.get(str(bond.GetBondType()), 0), ways.get(str(bond.GetBondDir()), 0))
        begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        edges += [(end, begin, *what), (begin, end, *what)]
    return atoms, sorted(edges)


def assert_equals_loop(smiles):
    found = featurize(smiles)
    nodes, edges = pointer(found.node_counts), pointer(found.edge_counts)
    table = np.column_stack([found.destination, found.source, found.bonds]).tolist()
    for place, position in enumerate(found.kept.tolist()):
        atoms = [tuple(row) for row in found.atoms[nodes[place] : nodes[place + 1]].tolist()]
        bonds = [tuple(row) for row in table[edges[place] : edges[place + 1]]]
        assert (atoms, bonds) == by_loop(smiles[position]), smiles[position]
    return found


class TestChargesAndHydrogens:
    """Worked out by hand: (charge code, hydrogens) of each atom."""

    @pytest.mark.parametrize(
        ("smiles", "expected"),
        [
            ("CC(=O)O", [(0, 3), (0, 0), (0, 0), (0, 1)]),  # acetic acid
            ("CC(=O)[O-]", [(0, 3), (0, 0), (0, 0), (2, 0)]),  # acetate
            ("C[NH3+]", [(0, 3), (1, 3)]),
            ("c1cc[nH]c1", [(0, 1), (0, 1), (0, 1), (0, 1), (0, 1)]),
            ("C1=CNC=C1", [(0, 1)] * 5),  # the same ring, written with double bonds
            ("c1ccncc1", [(0, 1), (0, 1), (0, 1), (0, 0), (0, 1), (0, 1)]),
            ("C1=CSC=C1", [(0, 1), (0, 1), (0, 0), (0, 1), (0, 1)]),
            ("CN(=O)=O", [(0, 3), (1, 0), (2, 0), (0, 0)]),  # RDKit separates the charges of a nitro group
            ("CS(=O)C", [(0, 3), (0, 0), (0, 0), (0, 3)]),
            ("CS", [(0, 3), (0, 1)]),
            ("OS(=O)(=O)O", [(0, 1), (0, 0), (0, 0), (0, 0), (0, 1)]),
            ("CP", [(0, 3), (0, 2)]),
            ("O[Cl](=O)=O", None),  # RDKit separates these charges too
            ("[Ca+2]", [(3, 0)]),
            ("[Al+3]", [(5, 0)]),
            ("C", [(0, 4)]),
            ("[BH4-]", [(2, 4)]),
            ("*C", [(0, 0), (0, 3)]),
            ("[H]C([H])([H])[H]", [(0, 4)]),
            ("Cl", [(0, 1)]),
        ],
    )
    def test_of_each_atom(self, smiles, expected):
        found = [tuple(row) for row in featurize([smiles]).atoms[:, 2:].tolist()]
        if expected is None:
            expected = [atom[2:] for atom in by_loop(smiles)[0]]
            assert any(charge for charge, _ in expected)
        assert found == expected


def test_text_with_a_line_end_is_parsed_as_rdkit_does():
    found = featurize(["CO", "CC\nN", "F"])
    assert [found.rejected, found.kept.tolist()] in ([[(1, "not a SMILES string")], [0, 2]], [[], [0, 1, 2]])
    assert found.atoms[-1, 0] == F
    assert found.node_counts.sum() == len(found.atoms)


def test_mixture_equals_a_loop_over_atoms_and_bonds():
    found = assert_equals_loop(VARIED * 3)
    assert found.rejected == []


@pytest.mark.parametrize("name", ["bbbp", "zinc250k", "clintox"])
def test_real_molecules_equal_a_loop_over_atoms_and_bonds(name):
    from itertools import islice

    from graphsc.data.datasets.catalog import NAMED, find
    from graphsc.data.molecules.rows import open_rows

    path = find(NAMED[name])
    if path is None:
        pytest.skip(f"{name} is not on this machine")
    smiles = [row.smiles for row in islice(open_rows(path).rows(), 300)]
    found = assert_equals_loop(smiles)
    assert len(found.kept) > 290


class TestRejected:
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "empty"),
            ("xyz", "not a SMILES string"),
            ("C1CC", "not a SMILES string"),
            ("CN(C)(C)(C)C", "Explicit valence for atom # 1 N, 5, is greater than permitted"),
            ("c1cccc1", "Can't kekulize mol. Unkekulized atoms: 0 1 2 3 4"),
            ("C\0C", "NUL byte"),
            ("CC\ufffd", "text is not UTF-8"),
            ("C" * 1_000_000, "1,000,000 characters, at most 20,000 are taken"),
            ("C" * 5_000, "5,000 atoms, at most 1,000 are taken"),
            ('=HYPERLINK("http://example.org")', "not a SMILES string"),
            ("\ud800", "not a SMILES string"),
        ],
        ids=["empty", "word", "ring", "valence", "aromatic", "nul", "utf8", "long", "large", "formula",
             "half"],
    )  # fmt: skip
    def test_reason(self, text, reason):
        found = featurize(["C", text, "O"])
        assert found.kept.tolist() == [0, 2]
        position, said = found.rejected[0]
        assert position == 1
        assert said == reason or (reason == "not a SMILES string" and said.startswith("RDKit: Unicode"))
        assert found.atoms[:, 0].tolist() == [C, O]

    def test_caps_are_options(self):
        assert len(featurize(["C" * 5_000], max_atoms=5_000).kept) == 1
        assert featurize(["CCCC"], max_length=3).rejected == [(0, "4 characters, at most 3 are taken")]

    def test_nothing_at_all(self):
        found = featurize([])
        assert found.atoms.shape == (0, 4)
        assert found.bonds.shape == (0, 2)


def test_rdkit_logging_is_restored(capfd):
    featurize(["not a molecule"])
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("not a molecule either")
    assert "SMILES Parse Error" in capfd.readouterr().err
