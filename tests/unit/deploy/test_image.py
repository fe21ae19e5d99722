"""deploy/Dockerfile: pinned, not root, with the locked packages and without the embedded engine."""

import re
import subprocess
from pathlib import Path

import pytest
from unit.deploy.composition import ROOT

DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
LOCK = ROOT / "requirements.lock"
ENGINE = {"chdb", "chdb-core", "pandas", "pyarrow"}


def packages(lock: str) -> dict[str, set[str]]:
    """By package, the packages that ask for it."""
    found: dict[str, set[str]] = {}
    for block in re.split(r"\n(?=[a-z])", lock):
        name = re.match(r"([a-z0-9-]+)==", block)
        if name:
            found.setdefault(name[1], set()).update(re.findall(r"^    #(?: via|  ) ([a-z0-9-]+)", block, re.MULTILINE))
    return found


@pytest.fixture(scope="module")
def server_lock(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the Dockerfile's own command makes of the lock file."""
    command = re.search(r"RUN (awk .+? > server\.lock)", DOCKERFILE)
    assert command is not None
    folder: Path = tmp_path_factory.mktemp("image")
    (folder / "requirements.lock").write_text(LOCK.read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run(["sh", "-c", command[1]], cwd=folder, check=True)
    return (folder / "server.lock").read_text(encoding="utf-8")


def test_the_image_has_the_locked_packages_but_the_embedded_engine(server_lock: str) -> None:
    assert packages(LOCK.read_text(encoding="utf-8")).keys() - packages(server_lock).keys() == ENGINE


def test_every_package_has_its_hashes(server_lock: str) -> None:
    for block in re.split(r"\n(?=[a-z])", server_lock.strip()):
        assert re.match(r"[a-z0-9-]+==\S+ .*\\\n    --hash=sha256:", block), block[:80]
    assert "--require-hashes" in DOCKERFILE


def test_nothing_but_the_engine_asks_for_what_is_left_out() -> None:
    locked = packages(LOCK.read_text(encoding="utf-8"))
    for name in ENGINE - {"chdb"}:
        assert locked[name] <= ENGINE, f"{name} is asked for by {locked[name] - ENGINE}"


def test_everything_that_it_is_made_of_is_pinned() -> None:
    assert set(re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)) == {"python:3.11.14-slim-trixie"}
    assert re.findall(r"install --no-cache-dir ([a-z]\S+)", DOCKERFILE) == ["setuptools==80.9.0"]


def test_it_runs_the_command_as_nobody_in_particular() -> None:
    last = DOCKERFILE.rsplit("FROM ", 1)[1]
    assert "\nUSER tracegrade\n" in last
    assert last.rstrip().endswith('ENTRYPOINT ["tracegrade"]')


def test_what_it_is_built_from_holds_no_secret_and_no_data() -> None:
    """Everything is left out but what is named, and what is named is what the Dockerfile copies."""
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert lines[0] == "*"
    let_in = {line[1:] for line in lines if line.startswith("!")}
    copied = {word for words in re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE) for word in words.split()}
    assert let_in == copied
    assert all((ROOT / name).exists() for name in let_in)
