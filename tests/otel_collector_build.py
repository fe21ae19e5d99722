"""The real OpenTelemetry Collector for tests: built from its Go modules, once for each manifest, into the user's cache folder.

It takes Go, half a gigabyte of modules and about three minutes on two cores the first time, and nothing after that. Run as a program it
builds, and prints where the binary is.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from machine import UnavailableError, cached

MANIFEST: Final = Path(__file__).parent / "otel_collector" / "manifest.yaml"
BUILDER: Final = "go.opentelemetry.io/collector/cmd/builder@v0.165.0"
BUILD_SECONDS: Final = 1500
_QUIETLY: Final = {"CGO_ENABLED": "0", "GOFLAGS": "-buildvcs=false", "GOTOOLCHAIN": "local", "GOTELEMETRY": "off"}


def binary() -> Path:
    """Return the Collector's path, building it where it is not there.

    Raises:
        UnavailableError: Go is missing, or did not build it.
    """
    return cached("otel-collector", BUILDER.encode() + MANIFEST.read_bytes(), _build) / "otelcol"


def _build(built: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise UnavailableError(
            "the OpenTelemetry Collector is built from Go modules, and there is no go; install Go 1.25 or newer"
        )
    with tempfile.TemporaryDirectory(dir=built.parent, prefix="otel-collector-building-") as temporary:
        folder = Path(temporary)
        environment = {**os.environ, **_QUIETLY, "GOBIN": str(folder / "bin")}
        _run([go, "install", BUILDER], environment, folder)
        manifest = folder / "manifest.yaml"
        where = f"dist:\n  output_path: {folder / 'out'}\n  go: {go}\n"
        manifest.write_text(MANIFEST.read_text(encoding="utf-8").replace("dist:\n", where, 1), encoding="utf-8")
        _run([str(folder / "bin" / "builder"), "--config", str(manifest)], environment, folder)
        whole = folder / "whole"
        whole.mkdir()
        (folder / "out" / "otelcol").rename(whole / "otelcol")
        whole.rename(built)


def _run(command: list[str], environment: Mapping[str, str], folder: Path) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False, env=dict(environment), cwd=folder
    )
    if done.returncode:
        raise UnavailableError(f"{Path(command[0]).name} did not build the Collector: {(done.stdout + done.stderr)[-2000:]}")


def main() -> int:
    """Build, and say where it is."""
    try:
        sys.stdout.write(f"{binary()}\n")
    except UnavailableError as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
