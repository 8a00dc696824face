"""Named public data sets: the catalogue, downloads, and molecules from the Python package index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.data.datasets.catalog import NAMED as NAMED
    from graphsc.data.datasets.catalog import NamedSet as NamedSet
    from graphsc.data.datasets.catalog import cache_folder as cache_folder
    from graphsc.data.datasets.catalog import search_folders as search_folders
    from graphsc.data.datasets.download import fetch_named as fetch_named

__all__ = export_lazily(
    __name__,
    {
        "catalog": "NAMED NamedSet cache_folder search_folders",
        "download": "fetch_named",
    },
)
