"""The TU sets that have names."""

from __future__ import annotations

from graphsc.data.named_set import NamedSet

TU_SETS = (
    NamedSet(
        "MUTAG",
        "molecules",
        "mutagenic compounds",
        188,
        "18b42ddc6696b32154316c28a1a4e5faaa81807fcb74e2f796ea675f13576bed",
    ),
    NamedSet(
        "NCI1",
        "molecules",
        "activity against lung cancer cells",
        4110,
        "8d00e295e2f0728dad7ac2f741fc0bfea7474009e5318ab401c7469756fd2ad3",
    ),
    NamedSet(
        "PROTEINS",
        "proteins",
        "enzymes or not",
        1113,
        "f040f6d4678b65d5cbb8efb60fdd2f347279192dd52e1aae4a3567235a8bb2a0",
    ),
    NamedSet(
        "DD",
        "proteins",
        "enzymes or not, large graphs",
        1178,
        "d477a07944db7367281c4b8c06a6ddf60746a105860cc6f33856254294fb0e7d",
    ),
    NamedSet(
        "COLLAB",
        "social",
        "fields of scientific collaboration",
        5000,
        "00b4d568ae04df7431cd4353b6727b26afd04031b373769a76d50809cc2b4ca4",
    ),
    NamedSet(
        "REDDIT-BINARY",
        "social",
        "question threads or discussions",
        2000,
        "8704ffc681cdc89259dfe00340fe8482172b9fdc8eae4155af94d9e8b682c06e",
    ),
    NamedSet("REDDIT-MULTI-5K", "social", "threads of five communities", 4999),
    NamedSet(
        "IMDB-BINARY",
        "social",
        "genres of films by their casts",
        1000,
        "41d13e892ab9e31785731bc00e85df2377e7300d1931d9a839f6cd734cd15a15",
    ),
)
