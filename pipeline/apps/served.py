"""Served: how a command finds the ``up`` that has a data folder open, and asks it instead of opening the folder itself.

One folder is opened by one process. ``up`` leaves its address in the folder; a file that a killed ``up`` left behind is told by its port.
"""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, cast

from pipeline.errors import ConfigurationError

FILE: Final = "served.json"
PATIENCE: Final = 30.0


def announce(folder: Path, url: str) -> None:
    """Leave the address of this process in its folder."""
    path = folder / FILE
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"url": url, "pid": os.getpid()}))
    fresh.replace(path)


def withdraw(folder: Path) -> None:
    """Take the address away again."""
    (folder / FILE).unlink(missing_ok=True)


def address(folder: Path) -> str | None:
    """Return the address of the process that has the folder open and answers; None where there is none."""
    try:
        url = str(json.loads((folder / FILE).read_text())["url"])
        with urllib.request.urlopen(f"{url}/healthz", timeout=2.0):  # noqa: S310 - the address that up wrote
            return url
    except (OSError, ValueError, KeyError):
        return None


def ask(url: str, path: str, key: str = "") -> Any:
    """Return the JSON that a running ``up`` answers; ``key`` is the project's API key, where there are keys.

    Raises:
        ConfigurationError: with the sentence that ``up`` answered, such as that a run is unknown.
    """
    try:
        request = urllib.request.Request(f"{url}{path}", headers={"Authorization": f"Bearer {key}"} if key else {})  # noqa: S310
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - the address that up wrote
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = cast("dict[str, str]", json.loads(error.read() or b"{}"))
        raise ConfigurationError(said.get("error", f"{url} answered {error.code}")) from None
