"""Revision: which commit of the code this process runs, as it is recorded beside every score (scoring, section 7)."""

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final

VARIABLE: Final = "TRACEGRADE_REVISION"
"""Names the environment variable that says it where there is no repository, as in an image."""
_CHECKOUT: Final = Path(__file__).parents[2]
_DESCRIBE: Final = ("git", "describe", "--always", "--dirty", "--abbrev=40", "--match=", "--exclude=*")
_PATIENCE_S: Final = 10


def revision(environment: Mapping[str, str] = os.environ) -> str:
    """Return the commit, with ``-dirty`` where files differ from it; the installed version where nobody knows the commit."""
    return environment.get(VARIABLE, "").strip() or _commit(_CHECKOUT) or f"version {version('tracegrade')}"


@cache
def _commit(folder: Path) -> str:
    if not (folder / ".git").exists():
        return ""
    try:
        said = subprocess.run(_DESCRIBE, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)  # noqa: S603 - nothing of it is given
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.strip() if said.returncode == 0 else ""
