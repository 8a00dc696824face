"""What is known of an atom and of a bond: four categorical columns, the same for every source.

Cardinalities do not depend on what a source holds, so that any two collections of molecules have one
feature scheme and a model trained on one reads the other.
"""

from __future__ import annotations

from graphsc.data.features import HIDDEN
from graphsc.data.table import Column

_TABLE = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf "
    "Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
_SYMBOLS = _TABLE.split()

# Code = atomic number - 1. The dummy atom `*` (atomic number 0) comes behind the elements, in the one row of
# the published encoder's 120 that it leaves unused; the last is that of an atom hidden in training.
DUMMY = len(_SYMBOLS)
ATOM = Column("atom", DUMMY + 2, (*_SYMBOLS, "*", HIDDEN))

# RDKit's own numbers 0 to 2; allenes, square planes and the like are all `other`.
OTHER_CHIRALITY = 3
CHIRALITY = Column("chirality", 4, ("unspecified", "clockwise", "counterclockwise", "other"))

# Any other kind of bond (dative, quadruple, unspecified) is read as single, and a note counts them.
SINGLE, DOUBLE, TRIPLE, AROMATIC = range(4)
BOND = Column("bond", 4, ("single", "double", "triple", "aromatic"))

# Which way a single bond beside a double bond points; wedges of drawings count as none.
NO_DIRECTION, UP, DOWN = range(3)
DIRECTION = Column("direction", 3, ("none", "up", "down"))
