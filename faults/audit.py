"""`make audit`: known weaknesses of the pinned dependencies, where the service that knows can be reached."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

SERVICE = ("pypi.org", 443)
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"


def audit() -> int:
    """1 where a weakness is known; 0 where none is, or with a reason where nobody could be asked."""
    try:
        socket.create_connection(SERVICE, timeout=5).close()
    except OSError as error:
        print(f"audit: skipped: {SERVICE[0]} cannot be reached ({error})")
        return 0
    command = [
        sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--progress-spinner", "off",
        "-f", "json", "-r", str(CONSTRAINTS),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        print(f"audit: skipped: pip-audit could not ask: {done.stderr.strip().splitlines()[-1:]}")
        return 0
    known = [one for one in found if "skip_reason" not in one]
    weak = [(one["name"], one["version"], each["id"]) for one in known for each in one["vulns"]]
    if not known:
        # A mirror may have the packages and not what is known of them: that is not "none found".
        print(f"audit: skipped: {SERVICE[0]} answers for none of {len(found)} packages")
        return 0
    for name, version, identity in weak:
        print(f"{name} {version}: {identity}")
    print(f"audit: {len(weak)} known weaknesses, {len(known)} of {len(found)} packages looked up")
    return 1 if weak else 0
