"""Real TU archives, if they are on this machine."""

import os
from pathlib import Path

import pytest

from graphsc.data.datasets.catalog import NAMED, search_folders


@pytest.fixture(scope="session")
def real_data():
    """`real_data("MUTAG")` gives the archive's path, or skips the test with a reason."""

    def find(title: str) -> Path:
        if not os.environ.get("GRAPHSC_DATA"):
            pytest.skip("GRAPHSC_DATA names no folder with real data")
        entry = NAMED[title.lower()]
        for folder in search_folders():
            if (folder / f"{entry.title}.zip").is_file():
                return folder / f"{entry.title}.zip"
        pytest.skip(f"{entry.title}.zip is not in GRAPHSC_DATA")

    return find
