"""Golden cases as JSON lines: one case a line, ordered by id, so that a difference of two exports is a difference of cases."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

import msgspec

from pipeline.model.golden import GoldenCase
from pipeline.model.ids import digest

_SAFE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# Ends of lines to some readers, and marks that turn text around in a terminal; JSON leaves both bare.
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def file_of(folder: Path, project: str) -> Path:
    """Return the file of a project's cases: directly in the folder, whatever the project is called."""
    name = project if _SAFE_NAME.fullmatch(project) else f"project-{digest(8, project)}"
    return folder / f"golden-{name}.jsonl"


def line(case: GoldenCase) -> str:
    """Return a case as one line of JSON, without its end."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(case).decode())


def write(path: Path, cases: Iterable[GoldenCase]) -> int:
    """Write the cases in place of what the file holds and return their number; a reader sees the old file or the new one.

    The file is readable by its owner alone: it holds what users wrote.
    """
    ordered = sorted(cases, key=lambda case: (case.id, case.project))
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile("w", encoding="utf-8", newline="\n", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            file.writelines(f"{line(case)}\n" for case in ordered)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise
    return len(ordered)
