"""What the quick-start pages tell their reader to install, to set and to paste."""

import re
from pathlib import Path
from typing import Final, NamedTuple

PAGES: Final = Path(__file__).parents[2] / "docs" / "quickstarts"
NAMES: Final = sorted(path.stem for path in PAGES.glob("*.md") if path.stem != "README")
_BLOCK: Final = re.compile(r"^```(\w+)\n(.+?)^```", re.MULTILINE | re.DOTALL)
_PLACE: Final = re.compile(r"In place of everything from `(.+?)` on:\n\n\Z")


class Page(NamedTuple):
    """A page as its reader uses it."""

    packages: tuple[str, ...]
    """What is given to pip or npm."""
    exports: dict[str, str]
    """Environment variables."""
    language: str
    """``python`` or ``js``."""
    programs: dict[str, str]
    """Whole programs. The page begins with one, under its title; the others are by the heading that shows what is to be changed."""
    seen: tuple[str, ...]
    """Lines of what ``tracegrade run`` is said to print."""


def page(name: str) -> Page:
    """Read a page."""
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    shell = "".join(code for language, code in _BLOCK.findall(text) if language == "sh")
    (seen,) = (code for language, code in _BLOCK.findall(text) if language == "text")
    installs = re.findall(r"^(?:pip|npm) install (.+)$", shell, re.MULTILINE)
    programs: dict[str, str] = {}
    for heading, body in re.findall(r"^##? ([^\n]+)\n(.*?)(?=^##? |\Z)", text, re.MULTILINE | re.DOTALL):
        for block in _BLOCK.finditer(body):
            if block[1] in ("python", "js"):
                language = block[1]
                programs[heading] = _after(next(iter(programs.values()), ""), body[: block.start()]) + block[2]
    return Page(
        tuple(word.strip("'") for line in installs for word in line.split()),
        dict(re.findall(r"^export (\w+)=(\S+)", shell, re.MULTILINE)),
        language,
        programs,
        tuple(line for line in seen.splitlines() if line not in ("", "…")),
    )


def _after(first: str, before: str) -> str:
    """Return what is kept of the page's first program, by the sentence that stands before a block."""
    place = _PLACE.search(before)
    if place is None:
        return ""
    kept, found, _ = first.rpartition(f"\n{place[1]}")
    assert found, f"no line begins with {place[1]}"
    return f"{kept}\n"
