"""Modules with all their mutants in them, as mutmut writes them: imported instead of the originals, of which one place is broken at a time."""

import difflib
import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final, NamedTuple

from mutmut.mutation.file_mutation import mutate_file_contents  # type: ignore[import-not-found] # of its environment
from mutmut.utils.file_utils import walk_mutatable_files  # type: ignore[import-not-found] # of its environment
from mutmut.utils.format_utils import get_mutant_name, mangled_name_from_mutant_name  # type: ignore[import-not-found] # of its environment

_NAME: Final = re.compile(r"x(?:ǁ(?P<kind>\w+)ǁ|_)(?P<function>\w+)__mutmut_(?:\d+|orig)\b")


class Broken(NamedTuple):
    """A module with its mutants: its file, the one with them, and where in that each function is, lines counted from 1.

    Numbers of mutants shift with the code: a name means something only beside the text it comes from.
    """

    module: str
    path: Path
    written: Path
    text: str
    mutants: Sequence[str]
    spans: dict[str, tuple[int, int]]

    def place(self, mutant: str) -> str:
        """Return the name of what a mutant breaks."""
        found = _NAME.fullmatch(mutant)
        if found is None:
            raise ValueError(f"mutmut names a mutant {mutant!r}, and that is no name of one")
        return f"{self.module.removeprefix('pipeline.')}.{found['kind'] + '.' if found['kind'] else ''}{found['function']}"

    def lines(self, mutant: str) -> str:
        """Return the lines that a mutant adds, or those that it only takes away."""
        original = self._lines_of(f"{mangled_name_from_mutant_name(mutant)}__mutmut_orig")
        diff = difflib.unified_diff(original, self._lines_of(mutant), n=0, lineterm="")
        changed = [line for line in diff if line.startswith(("+", "-"))][2:]
        added = [line[1:].strip() for line in changed if line.startswith("+")]
        return " ⏎ ".join(added or [f"without {line[1:].strip()}" for line in changed])

    def at(self, line: int) -> str | None:
        """Return the mutant that a line of the text is of."""
        return next((name for name in self.mutants if self.spans[name][0] <= line <= self.spans[name][1]), None)

    def _lines_of(self, function: str) -> list[str]:
        begin, end = self.spans[function]
        return [_NAME.sub(r"\g<function>", line) for line in self.text.splitlines()[begin - 1 : end]]


def broken_modules(kept: Path) -> dict[str, Broken]:
    """Return what the settings of mutmut name, by module; kept in a folder for the next time."""
    return {one.module: one for path in sorted(walk_mutatable_files()) if (one := _broken(path, kept)).mutants}


def _broken(path: Path, kept: Path) -> Broken:
    source = path.read_text("utf-8")
    made_of = hashlib.sha256(f"{importlib.metadata.version('mutmut')} {source}".encode()).hexdigest()
    written = kept / path
    index = written.with_suffix(".json")
    known: dict[str, Any] = json.loads(index.read_text("utf-8")) if index.exists() else {}
    if known.get("made_of") != made_of:
        made = mutate_file_contents(str(path), source)
        spans = {name: (span.start, span.end) for name, span in made.line_span_by_function_name.items()}
        known = {"made_of": made_of, "mutants": list(made.mutant_names), "spans": spans}
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(made.code, "utf-8")
        index.write_text(json.dumps(known), "utf-8")
    module = get_mutant_name(path, "").rstrip(".")
    return Broken(module, path, written, written.read_text("utf-8"), known["mutants"], known["spans"])


class InsteadOfOriginals(MetaPathFinder):
    """Imports modules with their mutants; the tree stays as it is."""

    def __init__(self, broken: Iterable[Broken]) -> None:
        self._broken = {one.module: one for one in broken}

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find what is broken; all else is found as always."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self._broken else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(fullname, spec.origin, self._broken[fullname])
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, broken: Broken) -> None:
        super().__init__(fullname, path)
        self._broken = broken

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - as the interface has it
        return compile(self._broken.text, self._broken.written.resolve(), "exec", dont_inherit=True)
