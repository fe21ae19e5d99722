"""What ``tracegrade doctor`` does: one line for each part that the configuration names."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine and the judge's client alone take seconds

import asyncio
from pathlib import Path

from pipeline.apps.commands import print_json, print_line

UNWELL = 1
"""Exit code where a part is not well."""


def doctor(config: Path | None, *, json: bool) -> int:
    """Print what is found of each part, as it is found."""
    return asyncio.run(_doctor(config, json=json))


async def _doctor(config: Path | None, *, json: bool) -> int:
    from pipeline.apps.doctor import examine

    found = []
    async for one in examine(config):
        found.append(one)
        if not json:
            print_line(one.line())
    if json:
        print_json(found)
    return UNWELL if any(one.ok is False for one in found) else 0
