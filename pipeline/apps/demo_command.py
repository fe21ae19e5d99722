"""``tracegrade demo``: what it is told is looked at before the pipeline, which takes seconds to import, is."""
# ruff: noqa: PLC0415 - a command imports what it needs

import asyncio
from pathlib import Path

from pipeline.apps.commands import quiet_exporters
from pipeline.errors import ConfigurationError


def demo(traces: Path | None, keep: Path | None) -> int:
    """Grade the bundled traces, or others."""
    if traces is not None and not traces.exists():
        raise ConfigurationError(f"--traces: {traces} does not exist; name a folder of recorded traces, or a file")
    if keep is not None:
        _fresh(keep)
    from pipeline.apps.demo.play import play

    quiet_exporters()
    return asyncio.run(play(traces, keep))


def _fresh(keep: Path) -> None:
    """Refuse what is no place for new data."""
    try:
        empty = not keep.exists() or not any(keep.iterdir())
    except OSError as error:
        raise ConfigurationError(f"--keep: {keep} cannot be made: {error.strerror}; name another folder") from error
    if not empty:
        raise ConfigurationError(f"--keep: {keep} is not empty; name a folder that does not exist yet")
