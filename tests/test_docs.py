"""The documentation is run as it stands: its Python, its commands, its links."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphsc.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Three or more backticks at any depth of indentation, what stands behind them, and the block.
FENCE = re.compile(
    r"^(?P<pad> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=pad)(?P=ticks) *$", re.M | re.S
)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)[^)]*\)|(?:src|href)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, and the line it starts on."""

    language: str
    code: str
    line: int


def blocks_of(text: str) -> list[Block]:
    found = []
    for match in FENCE.finditer(text):
        words = re.findall(r"[\w-]+", match["info"])
        if not words or "no-run" in words:
            continue
        pad = len(match["pad"])
        code = "".join(line[pad:] or "\n" for line in match["code"].splitlines(keepends=True))
        found.append(Block(words[0], code, text.count("\n", 0, match.start("code"))))
    return found


def commands_of(block: Block) -> list[list[str]]:
    """The `graphsc` lines of a block, with or without a prompt, as arguments; \\ joins lines."""
    lines = block.code.replace("\\\n", " ").splitlines()
    commands = [line.strip().removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in commands if line.startswith("graphsc ")]


def slugs_of(text: str) -> set[str]:
    """Anchors of a page's headings, as GitHub and MkDocs both make them."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings]
    return {re.sub(r"\s", "-", heading.strip()) for heading in plain}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runnable(page: Path) -> bool:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return any(block.language == "python" or commands_of(block) for block in blocks)


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=name_of)
def test_code_of_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page run in order, in one namespace and one empty folder, with no data but MUTAG."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            # Empty lines first, so that a traceback shows the page's own line.
            code = compile("\n" * block.line + block.code, str(page), "exec")
            exec(code, namespace)
        elif block.language in ("console", "bash"):
            for arguments in commands_of(block):
                code = run(arguments)
                where = f"{name_of(page)}, line {block.line}: graphsc {shlex.join(arguments)}"
                assert code == 0, where


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=name_of)
def test_fences_of_page_are_ones_the_site_understands(page: Path) -> None:
    """Several words behind a fence need braces there; without them the block is shown as running text."""
    words = [match["info"].strip() for match in FENCE.finditer(page.read_text(encoding="utf-8"))]
    assert [word for word in words if " " in word and not word.startswith("{")] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_page_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for match in LINK.finditer(text):
        link = match[1] or match[2]
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            broken.append(link)
        elif anchor and target.suffix == ".md":
            content = target.read_text(encoding="utf-8")
            # A page may be another file, taken in whole.
            for included in re.findall(r'^--8<-- "(.+)"$', content, re.M):
                content += (ROOT / included).read_text(encoding="utf-8")
            if anchor not in slugs_of(content):
                broken.append(link)
    assert not broken


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in listed} == set()
