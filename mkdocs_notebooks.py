"""A hook of MkDocs: every executed notebook under docs/notebooks becomes a page, with its stored outputs."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

FOLDER = "notebooks"


def on_files(files: Any, *, config: Any) -> Any:
    """Add a page for each notebook; the notebook itself stays a file to download."""
    from mkdocs.structure.files import File

    for path in sorted((Path(config.docs_dir) / FOLDER).glob("*.ipynb")):
        text = page_of(json.loads(path.read_text(encoding="utf-8")), path.name)
        files.append(File.generated(config, f"{FOLDER}/{path.stem}.md", content=text))
    return files


def page_of(notebook: dict[str, Any], name: str) -> str:
    """Markdown of a notebook: text as it is, code in fences, outputs below."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [_output(output) for output in cell["outputs"]]
    title, _, rest = "\n\n".join(part for part in parts if part).partition("\n")
    return f"{title}\n\n[The notebook]({name}), to download and run.\n{rest}\n"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        # One line: an empty line would end the block of HTML.
        html = " ".join("".join(data["text/html"]).split("\n"))
        return f'<div class="notebook-output">{html}</div>'
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="{escape("".join(data["text/plain"]))}" src="data:image/png;base64,{image}">'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"
