"""A user's cache of data sets that is nobody's."""

import pytest

from graphsc.data.datasets.catalog import cache_folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The folder that data sets are fetched into, with nothing else on the search path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return cache_folder()
