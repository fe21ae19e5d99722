"""The documentation names what there is: metrics, tables, dependencies."""

import re
import tomllib
from pathlib import Path

from pipeline.runtime.telemetry import GAUGES, Metric

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_metric_is_documented_with_its_kind_and_nothing_else_is() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (\w+)", (DOCS / "telemetry.md").read_text(), re.MULTILINE))
    assert rows == {name.value: "gauge" if name in GAUGES else "counter" for name in Metric}


def test_every_table_is_documented_and_nothing_else_is() -> None:
    migrations = "".join(path.read_text() for path in (ROOT / "sinks" / "clickhouse" / "migrations").glob("*.sql"))
    made = set(re.findall(r"CREATE TABLE (?:IF NOT EXISTS )?(\w+)", migrations))
    first_cells = re.findall(r"^\| (`[^|]+`) \|", (DOCS / "tables.md").read_text(), re.MULTILINE)
    assert made
    assert {name for cell in first_cells for name in re.findall(r"`(\w+)`", cell)} == made


def test_every_dependency_is_documented_with_what_it_is_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    text = (DOCS / "dependencies.md").read_text()
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+) \|$", text, re.MULTILINE))
    documented = {name.split(" ")[0] for cell in rows for name in cell.split(", ")} - {"dependency", "---"}
    extras = project["project"]["optional-dependencies"].values()
    required = [*project["project"]["dependencies"], *(one for some in extras for one in some)]
    assert documented == {_name(one) for one in required}
    for one in project["dependency-groups"]["dev"]:
        name = _name(one)
        assert name in text or name.startswith("types-") or name.endswith("-stubs"), f"{name} is for nothing"


def _name(requirement: str) -> str:
    return re.split(r"[<>=\[ ]", requirement)[0]
