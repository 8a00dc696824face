"""The documentation is correct: its Python blocks and commands run, its links and paths exist."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from graphsc.cli.main import run

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Three or more backticks at any indentation, the info string after them, and the block.
FENCE = re.compile(
    r"^(?P<pad> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)\n(?P<code>.*?)^(?P=pad)(?P=ticks) *$", re.M | re.S
)
LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)[^)]*\)|(?:src|href)=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its code, and the line before its first one."""

    language: str
    code: str
    line: int


def blocks_of(text: str) -> list[Block]:
    blocks = []
    for match in FENCE.finditer(text):
        words = re.findall(r"[\w-]+", match["info"])
        if not words or "no-run" in words:
            continue
        pad = len(match["pad"])
        code = "".join(line[pad:] or "\n" for line in match["code"].splitlines(keepends=True))
        blocks.append(Block(words[0], code, text.count("\n", 0, match.start("code"))))
    return blocks


def commands_of(block: Block) -> list[list[str]]:
    """The arguments of every `graphsc` line of a block, with or without a prompt; a backslash joins lines."""
    lines = block.code.replace("\\\n", " ").splitlines()
    commands = [line.strip().removeprefix("$ ") for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in commands if line.startswith("graphsc ")]


def slugs_of(text: str) -> set[str]:
    """The anchors of a page's headings, which GitHub and MkDocs make in the same way."""
    headings = re.findall(r"^#+ +(.+?) *$", FENCE.sub("", text), re.M)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings]
    return {re.sub(r"\s", "-", heading.strip()) for heading in plain}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def runnable(page: Path) -> bool:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    return any(block.language == "python" or commands_of(block) for block in blocks)


def files_of_checkout() -> set[str]:
    """Every file of the checkout but those of git and of caches."""
    files: set[str] = set()
    for folder, names, inside in os.walk(ROOT):
        names[:] = [name for name in names if not name.startswith(".") and name != "__pycache__"]
        files.update(str(Path(folder, name)) for name in inside if not name.startswith("."))
    return files


@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=name_of)
def test_code_of_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a page run in order, in one namespace and one empty folder, with MUTAG as the only data.

    They write nothing outside that folder, and no file whose name some systems do not take. Small comparisons
    run as on a machine with one core: a worker process would spend seconds on its imports.
    """
    before = files_of_checkout()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    namespace: dict[str, object] = {"__name__": "__docs__"}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            # Leading empty lines, so that a traceback shows the line of the page.
            code = compile("\n" * block.line + block.code, str(page), "exec")
            exec(code, namespace)
        elif block.language in ("console", "bash"):
            for arguments in commands_of(block):
                code = run(arguments)
                where = f"{name_of(page)}, line {block.line}: graphsc {shlex.join(arguments)}"
                assert code == 0, where
    assert files_of_checkout() - before == set()
    assert [str(path) for path in tmp_path.rglob("*:*")] == []


def test_no_file_of_the_checkout_has_a_colon_in_its_name() -> None:
    assert [path for path in files_of_checkout() if ":" in Path(path).name] == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != ROOT], ids=name_of)
def test_fences_of_page_are_ones_the_site_understands(page: Path) -> None:
    """MkDocs needs braces around several words after a fence; else it shows the block as running text."""
    words = [match["info"].strip() for match in FENCE.finditer(page.read_text(encoding="utf-8"))]
    assert [word for word in words if " " in word and not word.startswith("{")] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_of_page_exist(page: Path) -> None:
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
            # A page may include another file.
            for included in re.findall(r'^--8<-- "(.+)"$', content, re.M):
                content += (ROOT / included).read_text(encoding="utf-8")
            if anchor not in slugs_of(content):
                broken.append(link)
    assert not broken


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if page not in listed} == set()


def words_of(text: str) -> int:
    """Words of a page: what has letters. Numbers and the lines of tables are none."""
    return sum(bool(re.search("[A-Za-z]{2}", word)) for word in re.sub("<!--.*?-->", "", text).split())


LONG = [*(ROOT / "docs" / "api").glob("*.md")]  # the reference


@pytest.mark.parametrize("page", [page for page in PAGES if page not in LONG], ids=name_of)
def test_no_page_is_longer_than_one_reads(page: Path) -> None:
    """Files that it includes count."""
    included = re.compile('^--8<-- "(.+)"$', re.MULTILINE)
    text = included.sub(lambda name: (ROOT / name[1]).read_text("utf-8"), page.read_text(encoding="utf-8"))
    assert words_of(text) <= 2500


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_line_of_a_sentence_starts_with_a_comment(page: Path) -> None:
    """Markdown ends the paragraph there, so the sentence breaks in two."""
    started = re.compile(r"^ *<!--.*-->.*<!-- / -->", re.MULTILINE)
    assert started.findall(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "word", ["outlier", "uncertainty", "LaTeX", "SDF", "neighbour", "cluster", "censored"]
)
def test_words_that_people_search_for_are_in_a_short_page(word: str) -> None:
    pages = [*(ROOT / "docs" / "how").glob("*.md")]
    assert any(word.lower() in page.read_text(encoding="utf-8").lower() for page in pages)


def test_every_module_is_in_the_reference_once() -> None:
    package = ROOT / "src" / "graphsc"
    modules = []
    for path in sorted(package.rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if name.startswith(("graphsc.cli", "graphsc.__")):
            continue  # the command line has its own page
        if path.name != "__init__.py":
            modules.append(name)
        elif re.search(r"^(def|class) ", path.read_text(encoding="utf-8"), re.M):
            modules.append(name.removesuffix(".__init__"))
    pages = sorted((ROOT / "docs" / "api").glob("*.md"))
    entries = [entry for page in pages for entry in re.findall(r"^::: (\S+)$", page.read_text(), re.M)]
    assert sorted(entries) == sorted(modules)


def test_paths_named_in_contributing_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests|docs|benchmarks|faults|results)/[\w./-]*)`", text)
    assert paths
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []
