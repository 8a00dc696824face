"""The benchmarks are a folder of the repository, not a part of the package."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
