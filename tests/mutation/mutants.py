"""Mutants of what scores: ``make mutants`` breaks it in every small way, one at a time, and names those that no test finds.

A survivor that cannot be told from the original is explained in ``docs/mutants.md``; any other one fails. What was found out about a module is
kept in ``mutants/`` for as long as the module, and the tests that touch it, stay as they are. mutmut, which makes the mutants, is in an
environment of its own, whose packages come after the product's.
"""

import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]

from quickstarts.environments import python_environment  # noqa: E402 - it is found only now

PACKAGES: Final = str(next(python_environment("mutmut", HERE).glob("lib/python*/site-packages")))
sys.path.append(PACKAGES)
os.chdir(ROOT)  # where mutmut and pytest look for their settings

from mutation.broken import Broken, InsteadOfOriginals, broken_modules  # noqa: E402 - they import mutmut
from mutation.trial import PROCESSES, Trial, ended  # noqa: E402
from mutmut.configuration import config  # type: ignore[import-not-found] # noqa: E402 - of its environment

EXPLAINED: Final = ROOT / "docs" / "mutants.md"
KEPT: Final = ROOT / "mutants"
MOST_S: Final = 3600.0
"""After so long it ends; what was tried is kept, and the next time goes on from there."""
NICE: Final = 10
KILLED: Final = "killed"
REFUSED: Final = "refused"
SURVIVED: Final = "survived"
_ENTRY: Final = re.compile(r"^- `([\w.]+)`: `` (.+) ``$", re.MULTILINE)
_PYTEST: Final = ("-q", "--capture=sys", "--assert=plain", "--tb=short", "-p", "no:cacheprovider", "--hypothesis-profile=mutants")


class Survivor(NamedTuple):
    """Where a mutant is, and what the lines of it are that it changed. Numbers of mutants shift with the code, and are not kept."""

    where: str
    lines: str

    @property
    def entry(self) -> str:
        """It as the documentation lists it."""
        return f"- `{self.where}`: `` {self.lines} ``"


class Found:
    """What became of the mutants of a module: refused by the type checker, killed by a test, or alive."""

    def __init__(self, broken: Broken) -> None:
        self.broken = broken
        self.states: dict[str, str] = {}
        self._file = (KEPT / broken.path).with_suffix(".found.json")
        self._made_of = ""

    def load(self, tests: Iterable[Path]) -> None:
        """Take what was found out the last time, if neither the module nor its tests have changed since."""
        digest = hashlib.sha256(self.broken.text.encode())
        for path in sorted(tests):
            digest.update(path.read_bytes())
        self._made_of = digest.hexdigest()
        known: dict[str, Any] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        if known.get("made_of") == self._made_of:
            self.states = known["states"]

    def save(self) -> None:
        """Keep it."""
        self._file.write_text(json.dumps({"made_of": self._made_of, "states": self.states}), "utf-8")

    def refuse_at(self, line: int) -> None:
        """Take note that the type checker says of a line that it is wrong."""
        name = self.broken.at(line)
        if name is not None:
            self.states[name] = REFUSED

    @property
    def left(self) -> list[str]:
        """What was not tried."""
        return [name for name in self.broken.mutants if name not in self.states]

    @property
    def survivors(self) -> Iterator[str]:
        """What is alive."""
        return (name for name, state in self.states.items() if state == SURVIVED)


def explained() -> set[Survivor]:
    """Return the survivors that are explained."""
    return {Survivor(*found) for found in _ENTRY.findall(EXPLAINED.read_text("utf-8"))}


def try_all(trial: Trial, modules: list[Found], until: float) -> None:
    """Try what was not tried, for as long as there is time; first by the type checker, which is the fastest to say so."""
    for one in modules:
        one.load(trial.paths(one.broken.module))
    refuse([one for one in modules if not one.states])
    for one in modules:
        running: dict[int, str] = {}
        for name in one.left:
            if time.monotonic() > until:
                break
            running[trial.fork(f"{one.broken.module}.{name}")] = name
            if len(running) >= PROCESSES:
                _end_one(running, one)
        while running:
            _end_one(running, one)
        one.save()
        print(f"{one.broken.module}: {dict(Counter(one.states.values()))}", file=sys.__stderr__, flush=True)


def _end_one(running: dict[int, str], one: Found) -> None:
    for name, passed in ended(running):
        one.states[name] = SURVIVED if passed else KILLED


def refuse(modules: list[Found]) -> None:
    """Have the type checker look at all mutants of modules at once: what it refuses cannot be run."""
    if not modules:
        return
    by_path = {str(one.broken.path): one for one in modules}
    command = [sys.executable, "-m", *config().type_check_command, "--cache-dir", str(KEPT / ".mypy_cache"), *by_path]
    for path, one in by_path.items():
        command += ["--shadow-file", path, str(one.broken.written)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": PACKAGES})
    if said.returncode > 1 or said.stderr:
        raise pytest.UsageError(f"the type checker: {said.stdout}{said.stderr}")
    for error in map(json.loads, filter(None, said.stdout.splitlines())):
        if error["file"] in by_path and error["severity"] == "error":
            by_path[error["file"]].refuse_at(error["line"])
    for one in modules:
        one.save()


def main(wanted: list[str]) -> int:
    """Try the modules, or those that patterns name, and list what is not explained; 1 where there is any."""
    os.nice(NICE)
    until = time.monotonic() + MOST_S
    broken = broken_modules(KEPT)
    modules = [
        Found(one) for name, one in broken.items() if not wanted or any(fnmatch.fnmatch(name, f"*.{like}") for like in wanted)
    ]
    sys.meta_path.insert(0, InsteadOfOriginals(broken.values()))
    trial = Trial(KEPT, lambda trial: try_all(trial, modules, until))
    pytest.main([*_PYTEST, *config().pytest_add_cli_args_test_selection], plugins=[trial])
    if not trial.ended:
        return 2
    return _report(modules, complete=not wanted)


def _report(modules: list[Found], *, complete: bool) -> int:
    known = explained()
    found = {Survivor(one.broken.place(name), one.broken.lines(name)) for one in modules for name in one.survivors}
    states, left = Counter(state for one in modules for state in one.states.values()), sum(len(one.left) for one in modules)
    counts = f"{states[KILLED]} killed by tests, {states[REFUSED]} refused by the type checker, {states[SURVIVED]} alive"
    print(f"\n{states.total()} mutants: {counts}")  # noqa: T201
    if left:
        print(f"ended after {MOST_S / 60:.0f} min; {left} are left for the next time")  # noqa: T201
    elif complete and known - found:
        print("explained, and not there any more:", *sorted(one.entry for one in known - found), sep="\n")  # noqa: T201
    if found - known:
        print(f"not explained in {EXPLAINED.relative_to(ROOT)}:", *sorted(one.entry for one in found - known), sep="\n")  # noqa: T201
    return int(bool(found - known))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
