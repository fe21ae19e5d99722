"""The table of dialects in docs/dialects.md, made from what the dialects say of themselves; ``--write`` puts it there."""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from collectors.dialects import DIALECTS
from collectors.dialects.dialect import Dialect

PAGE = Path(__file__).parents[1] / "docs" / "dialects.md"
HEAD = "| dialect | written by | found by | captured by default | to switch content on |"
TABLE = re.compile(rf"{re.escape(HEAD)}\n(?:\|.*\n)+")


def table(dialects: Iterable[Dialect] = DIALECTS) -> str:
    """Rows by name."""
    rows = [_row(dialect) for dialect in sorted(dialects, key=lambda one: one.name)]
    return "\n".join([HEAD, "|---|---|---|---|---|", *rows, ""])


def _row(dialect: Dialect) -> str:
    marks = [f"scope `{mark}`" for mark in dialect.marks.scopes] + [f"`{mark}`" for mark in dialect.marks.attributes]
    about = dialect.about
    return f"| `{dialect.name}` | {about.title} | {', '.join(marks)} | {about.default} | {about.content or '–'} |"


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text()))
