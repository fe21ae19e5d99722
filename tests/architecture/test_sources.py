"""The shape of the sources: sizes, vendors behind one door, and nothing that belongs to somebody's machine."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("pipeline", "collectors", "sinks")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
NOT_OURS = {"__pycache__", "build", "dist", "tracegrade-data", "data"}


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for path in MODULES:
        yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def test_no_module_is_longer_than_a_sitting() -> None:
    assert [str(path) for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 300] == []


def test_no_function_is_longer_than_a_screen() -> None:
    """Its body, that is: signatures and docstrings are as long as they have to be."""
    long = [
        f"{path}:{node.lineno} {node.name}"
        for path, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _body_lines(node) > 40
    ]
    assert long == []


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    return (statements[-1].end_lineno or 0) - statements[0].lineno + 1 if statements else 0


@cache
def imports() -> dict[str, set[str]]:
    """By top-level name, the modules of ours that import it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, tree in trees():
        for node in ast.walk(tree):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            for name in names:
                found[name.split(".")[0]].add(path.as_posix())
    return found


@pytest.mark.parametrize(
    ("vendor", "door"),
    [
        ("clickhouse_connect", "sinks/clickhouse/"),
        ("confluent_kafka", "collectors/kafka/"),
        ("detect_secrets", "collectors/redaction/credentials.py"),
        ("faust", "pipeline/runtime/faust/"),
        ("mode", "pipeline/runtime/faust/"),
        ("openai", "pipeline/judges/openai.py"),
        ("re2", "pipeline/patterns.py"),
        ("sqlalchemy", "collectors/records/sql.py"),
        ("stdnum", "collectors/redaction/personal.py"),
        ("grpc", "collectors/otlp/grpc.py"),
        ("grpc_health", "collectors/otlp/grpc.py"),
        ("jinja2", "pipeline/apps/pages/"),
        ("markupsafe", "pipeline/apps/pages/"),
    ],
)
def test_a_vendor_s_library_is_imported_in_one_place(vendor: str, door: str) -> None:
    assert imports()[vendor]
    assert {path for path in imports()[vendor] if not path.startswith(door)} == set()


def test_the_engine_is_reached_through_its_client_alone() -> None:
    assert imports()["chdb"] == set()


def test_embedded_mode_knows_neither_faust_nor_kafka() -> None:
    code = "import sys, pipeline.apps.up, pipeline.apps.demo.play, pipeline.apps.bench; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"faust", "confluent_kafka", "mode"} & {name.split(".")[0] for name in loaded}


def files() -> Iterator[Path]:
    """Yield what a clone holds: everything but what tools and runs leave behind."""
    waiting = [ROOT]
    while waiting:
        for path in waiting.pop().iterdir():
            if path.is_dir():
                hidden = path.name.startswith(".") and path.name != ".ci"
                if not hidden and path.name not in NOT_OURS and not path.name.endswith(".egg-info"):
                    waiting.append(path)
            else:
                yield path


# Written so that this file names none of them.
REGISTRIES = re.compile(r"pypi[.]org|pythonhosted[.]org|npmjs[.]org|anaconda[.]org|--(?:extra-)?index[-]url")
HOMES = re.compile(r"/r[o]ot\b|/w[o]rk/|/h[o]me/[a-z]|/U[s]ers/[A-Za-z]")
RECORDED = (
    "tests/corpora/",
    "tests/unit/replay/data/",
    "tests/unit/judges/attacks/",
    "pipeline/apps/demo/traces/",
)


def test_no_file_names_a_package_registry_or_somebody_s_machine() -> None:
    found = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {registry[0]}" for registry in REGISTRIES.finditer(text)]
        if not name.startswith(RECORDED):
            found += [f"{name}: {home[0]}" for home in HOMES.finditer(text)]
    assert found == []
