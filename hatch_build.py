"""The README as a package index shows it: there a link to a file of this repository leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)\s]+)\)")
IMAGE = re.compile(r'(<img [^>]*src=")(?![a-z]+:)([^"]+)("[^>]*>)\n*')


class ReadmeHook(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata: dict[str, object]) -> None:
        urls = metadata.get("urls", {})
        repository = urls.get("Repository") if isinstance(urls, dict) else None
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": package_readme(text, repository)}


def package_readme(text: str, repository: str | None) -> str:
    """The README with absolute links, or without links and pictures if the repository has no address."""
    if repository is None:
        return LINK.sub(r"\1", IMAGE.sub("", text))
    text = IMAGE.sub(lambda match: f"{match[1]}{repository}/raw/HEAD/{match[2]}{match[3]}\n", text)
    return LINK.sub(lambda match: f"[{match[1]}]({repository}/blob/HEAD/{match[2]})", text)
