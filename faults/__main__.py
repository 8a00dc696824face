"""`python -m faults`: soak, fuzz, load, and the page that shows what they measured."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterable
from pathlib import Path

from faults import figures


def _chosen(names: str | None, known: Iterable[str]) -> list[str]:
    if names is None:
        return list(known)
    return [] if names == "none" else names.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(prog="faults", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("fuzz", help="mutated files to every reader")
    verb.add_argument("--inputs", type=int, default=20_000)
    verb.add_argument("--targets", help="only these readers, with commas; none for no reader")
    verb.add_argument("--stored", help="only these stored files, with commas; none for no file")
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--keep", type=Path, default=Path("fuzz-findings"))
    verb.add_argument("--seconds", type=float, default=900, help="for each target, at most")
    verb = verbs.add_parser("fuzz-one")
    for name in ("name", "inputs", "seed", "keep"):
        verb.add_argument(name)
    verb.add_argument("--seconds", type=float, default=math.inf)
    verb = verbs.add_parser("damage-one")
    for name in ("name", "flips", "seed", "keep"):
        verb.add_argument(name)
    verb.add_argument("--seconds", type=float, default=math.inf)
    verb = verbs.add_parser("soak", help="kills at random moments")
    verb.add_argument("--kills", type=int, default=15, help="of each verb, at least")
    verb.add_argument("--verbs", help="only these, with commas")
    verb.add_argument("--seed", type=int, default=0)
    verb.add_argument("--seconds", type=float, default=840, help="for all verbs together")
    verb = verbs.add_parser("load", help="embed and predict very many graphs, stopped and gone on with")
    verb.add_argument("--graphs", type=int, default=1_000_000)
    verb.add_argument("--verbs", help="only these, with commas")
    verbs.add_parser("audit", help="known weaknesses of the pinned dependencies")
    verbs.add_parser("page", help="rebuild the figures of docs/reliability.md")
    arguments = parser.parse_args()
    if arguments.verb == "fuzz-one":
        from faults.fuzz import fuzz_one

        found = fuzz_one(
            arguments.name,
            int(arguments.inputs),
            int(arguments.seed),
            Path(arguments.keep),
            arguments.seconds,
        )
        print(json.dumps(found))
    elif arguments.verb == "damage-one":
        from faults.bits import damage_one
        from faults.stored import STORED

        keep = Path(arguments.keep) / arguments.name
        found = damage_one(
            STORED[arguments.name], int(arguments.flips), seed=int(arguments.seed), keep=keep,
            seconds=arguments.seconds,
        )  # fmt: skip
        print(json.dumps(found))
    elif arguments.verb == "fuzz":
        from faults.fuzz import damage, fuzz
        from faults.stored import STORED
        from faults.targets import TARGETS

        kinds = _chosen(arguments.stored, STORED)
        damaged = damage(kinds, arguments.inputs, arguments.seed, arguments.keep, arguments.seconds)
        silent, errors = (sum(int(str(row[key])) for row in damaged.values()) for key in ("silent", "errors"))
        print(f"bits: {len(kinds)} kinds of files, {silent} silent changes, {errors} errors")
        names = _chosen(arguments.targets, TARGETS)
        found = fuzz(names, arguments.inputs, arguments.seed, arguments.keep, arguments.seconds)
        findings = sum(int(str(row["findings"])) for row in found.values())
        inputs = sum(int(str(row["inputs"])) for row in found.values())
        survivors = sum(int(str(row["survivors"])) for row in found.values())
        print(f"fuzz: {inputs:,} inputs, {survivors:,} survivors, {findings} findings")
        sys.exit(1 if findings or silent or errors else 0)
    elif arguments.verb == "soak":
        from faults.soak import soak
        from faults.verbs import VERBS

        names = arguments.verbs.split(",") if arguments.verbs else list(VERBS)
        found = soak(names, arguments.kills, arguments.seed, arguments.seconds)
        kills, resumes = (sum(int(str(row[key])) for row in found.values()) for key in ("kills", "resumes"))
        wrong = {
            key: sum(int(str(row[key])) for row in found.values())
            for key in ("damaged", "left_over", "mismatches", "processes_left")
        }
        said = ", ".join(f"{value} {key.replace('_', ' ')}" for key, value in wrong.items())
        print(f"soak: {kills} kills, {resumes} resumes, {said}")
        sys.exit(1 if any(wrong.values()) else 0)
    elif arguments.verb == "load":
        from faults.load import run_load, went_well
        from faults.loads import LOADS

        well = True
        for name in arguments.verbs.split(",") if arguments.verbs else LOADS:
            row = run_load(LOADS[name], arguments.graphs)
            figures.store("load", figures.load("load") | {name: row})
            print(f"{name:<9} " + "  ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            well = well and went_well(row)
        sys.exit(0 if well else 1)
    elif arguments.verb == "audit":
        from faults.audit import audit

        sys.exit(audit())
    elif arguments.verb == "page":
        changed = figures.write_page()
        print(f"{figures.PAGE}: {'figures rebuilt' if changed else 'nothing has changed'}")


if __name__ == "__main__":
    main()
