"""As many molecules as are asked for, put together from fragments, with rows among them that are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

# Fragments that any other may follow: each ends, and all but the first kind begin, with a free single bond.
HEADS = (
    "C", "CC", "CCC", "CC(C)", "CC(C)(C)", "N", "CN", "CN(C)", "O", "CO", "CCO", "OC(=O)", "NC(=O)",
    "CC(=O)", "N#C", "F", "Cl", "Br", "CS", "CS(=O)(=O)", "FC(F)(F)", "C=C", "C#C", "C1CC1", "C1CCNCC1",
)  # fmt: skip
LINKS = (
    "C", "CC", "CCC", "CO", "CN", "CS", "C(=O)N", "NC(=O)", "C(=O)O", "OC", "C(C)", "C(C)C", "C(O)", "C(N)C",
    "CNC", "COC", "S(=O)(=O)N", "CC(=O)", "NCC", "OCC",
)  # fmt: skip
RINGS = (
    "c1ccc({})cc1", "c1cccc({})c1", "c1ccccc1{}", "c1ccc({})nc1", "c1cnc({})cn1", "c1cc({})co1",
    "c1cc({})cs1", "c1ccc2cc({})ccc2c1", "c1c[nH]c2ccc({})cc12", "C1CCC({})CC1", "C1CCN({})CC1",
    "N1CCN({})CC1", "C1CC({})C1", "c1nc({})cs1", "c1ccc(O)c({})c1", "c1cc(F)cc({})c1", "c1ccc(Cl)c({})c1",
    "c1nn(C)cc1{}", "C1COC({})C1", "c1ccc2oc({})nc2c1",
)  # fmt: skip
SPACERS = ("", "C", "CC", "CO")
TAILS = (
    "C", "CC", "CCC", "C(C)C", "C(C)(C)C", "CN", "CN(C)C", "CO", "CCO", "C(=O)O", "C(=O)N", "C(=O)C", "C#N",
    "CF", "CCl", "CBr", "CSC", "CS(=O)(=O)C", "C(F)(F)F", "C=C", "C#C", "C1CC1", "C1CCNCC1", "c1ccccc1",
    "c1ccncc1",
)  # fmt: skip
PARTS = (HEADS, LINKS, RINGS, SPACERS, TAILS)
CHOICES = 1_000_000  # the product of their numbers; a few of them spell the same molecule
STRIDE = 7_919  # prime, so that neighbours differ and no choice comes twice before all have come

BROKEN_EVERY = 1_000
BROKEN = ("nonsense", "", "C(C)(C)(C)(C)C", "c1ccc", "C" * 5_000, "=1+1")


def smiles_of(number: int) -> str:
    """One of a million molecules by its number."""
    rest, chosen = number * STRIDE % CHOICES, []
    for part in PARTS:
        rest, place = divmod(rest, len(part))
        chosen.append(part[place])
    head, link, ring, spacer, tail = chosen
    return head + link + ring.format(spacer + tail)


def is_broken(number: int) -> bool:
    """Whether a table has no molecule in this row."""
    return number % BROKEN_EVERY == BROKEN_EVERY // 2


def write_molecules(path: Path, rows: int) -> None:
    """A table: number, molecule, whether it has nitrogen; now and then a row without a molecule."""
    with open(path, "w") as file:
        file.write("id,smiles,nitrogen\n")
        file.writelines(_lines(rows))


def _lines(rows: int) -> Iterator[str]:
    for number in range(rows):
        broken = BROKEN[number // BROKEN_EVERY % len(BROKEN)]
        smiles = broken if is_broken(number) else smiles_of(number)
        yield f"{number},{smiles},{int('n' in smiles.lower())}\n"
