"""A headless Chromium that tests can drive, if one is installed."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from chromium import Chromium

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """One browser for all tests; each opens its own page."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine")
    browser = Chromium(CHROMIUM, tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()
