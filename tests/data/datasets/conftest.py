"""An empty cache folder."""

import pytest

from graphsc.data.datasets.catalog import cache_folder


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The cache folder, with nothing else on the search path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    return cache_folder()
