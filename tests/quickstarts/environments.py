"""Where a page's program runs: the packages it tells to install, pinned, in an environment of their own in the user's cache folder.

``python -m quickstarts.environments`` pins what is not pinned yet, as ``make lock`` does: a page's folder that is removed is pinned anew.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from machine import UnavailableError, cached
from quickstarts.pages import NAMES, Page, page

PINNED: Final = Path(__file__).parent / "pinned"
LOCKED: Final = "package-lock.json"
_BUILD_SECONDS: Final = 900
_QUIETLY: Final = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")


def environment(name: str) -> Path:
    """Return the folder of a page's environment, building it where it is not there.

    Raises:
        UnavailableError: something is missing, or a package was not got.
    """
    pinned = PINNED / name
    if page(name).language == "python":
        return python_environment(f"quickstart-{name}", pinned)
    made_of = b"".join(path.read_bytes() for path in sorted(pinned.iterdir())) + sys.version.encode()
    return cached(f"quickstart-{name}", made_of, lambda folder: _node(folder, pinned))


def python_environment(name: str, pinned: Path) -> Path:
    """Return the folder of an environment with what a folder's ``requirements.txt`` pins, building it where it is not there.

    Raises:
        UnavailableError: a package was not got.
    """
    made_of = (pinned / "requirements.txt").read_bytes() + sys.version.encode()
    return cached(name, made_of, lambda folder: _python(folder, pinned))


def versions(name: str) -> dict[str, str]:
    """Return what a page's packages, and those they need, are pinned to."""
    if page(name).language == "python":
        text = (PINNED / name / "requirements.txt").read_text(encoding="utf-8")
        return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE))
    locked = json.loads((PINNED / name / LOCKED).read_text(encoding="utf-8"))["packages"]
    return {path.removeprefix("node_modules/"): one["version"] for path, one in locked.items() if path}


def _python(folder: Path, pinned: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="quickstart-building-") as temporary:
        made = Path(temporary) / "environment"
        _run([sys.executable, "-m", "venv", "--without-pip", made])
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", made)
        _run([*pip, "install", "--quiet", "--no-compile", "--require-hashes", "-r", pinned / "requirements.txt"])
        made.rename(folder)


def _node(folder: Path, pinned: Path) -> None:
    if shutil.which("npm") is None:
        raise UnavailableError("a program for Node needs npm, and there is none; install Node 20 or newer")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="quickstart-building-") as temporary:
        made = Path(temporary) / "environment"
        shutil.copytree(pinned, made)
        _run(["npm", "ci", *_QUIETLY, "--prefix", made])
        made.rename(folder)


def _run(command: Sequence[str | Path], given: str = "", cwd: Path | None = None) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, input=given, capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False, cwd=cwd)
    if done.returncode:
        raise UnavailableError(f"{' '.join(words)} failed: {(done.stdout + done.stderr)[-2000:]}")


def pin(name: str, told: Page) -> None:
    """Pin what a page tells to install, and all that it needs; neither file names a host."""
    folder = PINNED / name
    folder.mkdir(parents=True, exist_ok=True)
    if told.language == "python":
        compiled = ("uv", "pip", "compile", "-", "--universal", "--python-version", "3.11", "--generate-hashes", "--quiet")
        written = ("--no-emit-index-url", "--no-emit-find-links", "--no-header", "-o", folder / "requirements.txt")
        _run([*compiled, *written], "\n".join(told.packages))
    elif not (folder / LOCKED).exists():
        (folder / "package.json").write_text('{"private": true, "type": "module"}')
        options = ["--package-lock-only", "--omit-lockfile-registry-resolved"]
        _run(["npm", "install", *_QUIETLY, *options, *told.packages], cwd=folder)


if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        pin(name, page(name))
        sys.stdout.write(f"{name}: {len(versions(name))} packages\n")
