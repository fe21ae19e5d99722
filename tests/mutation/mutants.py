"""Mutants of what scores: ``make mutants`` breaks it in every small way, one at a time, and names those that no test finds.

A survivor that cannot be told from the original is explained in ``docs/mutants.md``; any other one fails. mutmut is in an environment of
its own, whose packages come after the product's, and works on a copy of the tree in ``mutants/``, which it keeps for the next time.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent)]

from quickstarts.environments import python_environment  # noqa: E402 - it is found only now

EXPLAINED: Final = ROOT / "docs" / "mutants.md"
MOST_S: Final = 3600.0
"""After so long it ends; what was tried is kept, and the next time goes on from there."""
NICE: Final = 10
_ENTRY: Final = re.compile(r"^- `([\w.]+)`: `` (.+) ``$", re.MULTILINE)
_MUTANT: Final = re.compile(r"(?P<module>[\w.]+)\.x(?:ǁ(?P<kind>\w+)ǁ|_)(?P<function>\w+)__mutmut_\d+")


class Survivor(NamedTuple):
    """Where a mutant is, and what the lines of it are that it changed. Numbers of mutants shift with the code, and are not kept."""

    where: str
    lines: str

    @property
    def entry(self) -> str:
        """It as the documentation lists it."""
        return f"- `{self.where}`: `` {self.lines} ``"


def explained() -> set[Survivor]:
    """Return the survivors that are explained."""
    return {Survivor(*found) for found in _ENTRY.findall(EXPLAINED.read_text("utf-8"))}


def survivors() -> Iterator[Survivor]:
    """Yield the mutants that every test passed, or none ran."""
    from mutmut.mutation.diff_apply import get_diff_for_mutant  # type: ignore[import-not-found] # noqa: PLC0415 - of its environment

    for name in _named("survived", "no tests"):
        yield Survivor(_place(name), _changed(get_diff_for_mutant(name)))


def _named(*states: str) -> list[str]:
    said = _mutmut("results", "--all", "true").stdout
    lines = (line.strip().rpartition(": ") for line in said.splitlines())
    return [name for name, _, state in lines if state in states]


def _place(name: str) -> str:
    found = _MUTANT.fullmatch(name)
    if found is None:
        raise ValueError(f"mutmut names a mutant {name!r}, and that is no name of one")
    inside = f"{found['kind']}." if found["kind"] else ""
    return f"{found['module'].removeprefix('pipeline.')}.{inside}{found['function']}"


def _changed(diff: str) -> str:
    """Return the lines that a diff adds, and those that it only takes away."""
    lines = [line for line in diff.splitlines() if line[:1] in "+-" and not line.startswith(("+++", "---"))]
    added = [line[1:].strip() for line in lines if line.startswith("+")]
    return " ⏎ ".join(added or [f"without {line[1:].strip()}" for line in lines])


def _mutmut(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(_command(*arguments), cwd=ROOT, capture_output=True, text=True, check=True)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, __file__, "--mutmut", *arguments]


def _run() -> bool:
    """Run mutmut for as long as it may take; returns whether it came to its end."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"}
    with subprocess.Popen(_command("run"), cwd=ROOT, env=environment, preexec_fn=lambda: os.nice(NICE)) as process:  # noqa: PLW1509
        try:
            if process.wait(MOST_S):
                raise SystemExit(process.returncode)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait()
            return False
    return True


def main() -> int:
    """Run, and list what is not explained; 1 where there is any."""
    whole = _run()
    tried, unexplained = len(_named("killed", "survived", "timeout", "caught by type check")), []
    known, found = explained(), set(survivors())
    unexplained = sorted(found - known)
    print(f"\n{tried} mutants, {len(found)} survived, {len(found & known)} of them explained in {EXPLAINED.relative_to(ROOT)}")  # noqa: T201
    if not whole:
        print(f"ended after {MOST_S / 60:.0f} min; {len(_named('not checked'))} are left for the next time")  # noqa: T201
    elif known - found:
        print("explained, and not there any more:", *sorted(one.entry for one in known - found), sep="\n")  # noqa: T201
    print(*(one.entry for one in unexplained), sep="\n")  # noqa: T201
    return int(bool(unexplained))


if __name__ == "__main__":
    packages = str(next(python_environment("mutmut", HERE).glob("lib/python*/site-packages")))
    sys.path.append(packages)
    if sys.argv[1:2] == ["--mutmut"]:
        os.environ["PYTHONPATH"] = packages  # of the type checker, which it starts: what is mutated imports mutmut
        from mutmut.__main__ import cli  # type: ignore[import-not-found]

        del sys.argv[1]
        cli()
    sys.exit(main())
