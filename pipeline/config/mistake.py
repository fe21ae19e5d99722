"""Mistakes: what is wrong with a configuration, where, and what to write instead."""

import difflib
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

Location: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the top of the file to a value; empty for the whole file."""


class Mistake(msgspec.Struct, frozen=True, order=True):
    """Something to correct: the line it stands on (0 for the file as a whole), where, and what to write instead."""

    line: int
    where: str
    what: str

    def at(self, file: str) -> str:
        """Return the mistake as it is shown: ``tracegrade.yaml:12: agents.support: …``."""
        return ": ".join(part for part in (f"{file}:{self.line}" if self.line else file, self.where, self.what) if part)


def spoken(location: Location) -> str:
    """Return a location as it is said: ``agents.support.checks.policies[0].name``."""
    text = "".join(
        "[]" if part == "[]" else f"[{part}]" if isinstance(part, int) else f".{part}" if part else '.""' for part in location
    )
    return text.removeprefix(".")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return ``; did you mean `…`?`` where a known word is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean `{near[0]}`?" if near else ""
