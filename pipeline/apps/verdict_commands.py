"""What ``tracegrade verdict`` and ``tracegrade compare`` do: a stored run explained, or compared with another."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine alone takes seconds

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pipeline.apps.commands import ask, print_json
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from sinks.clickhouse.store import Store


def verdict(config: Path | None, run_id: str, *, json: bool) -> int:
    """Show the structured verdict on a run."""
    from pipeline.apps import show, show_verdict
    from pipeline.config.load import load

    async def direct(store: "Store", project: str) -> Any:
        from pipeline.runtime.verdicts import Verdicts

        return await Verdicts(store).one(project, prefix)

    prefix = _prefix(run_id)
    found = ask(load(config), f"/api/runs/{quote(prefix, safe='')}/verdict", direct)
    if json:
        print_json(found)
    else:
        show.console().print(show_verdict.verdict(found))
    return 0


def compare(config: Path | None, first: str, second: str, *, across_contracts: bool, json: bool) -> int:
    """Compare the second run with the first."""
    from pipeline.apps import show, show_verdict
    from pipeline.config.load import load

    async def direct(store: "Store", project: str) -> Any:
        from pipeline.runtime.verdicts import Verdicts

        return await Verdicts(store).compared(project, *prefixes, across_contracts=across_contracts)

    prefixes = (_prefix(first), _prefix(second))
    asked = {"a": prefixes[0], "b": prefixes[1], "across_contracts": str(across_contracts).lower()}
    found = ask(load(config), f"/api/compare?{urlencode(asked)}", direct)
    if json:
        print_json(found)
    else:
        show.console().print(show_verdict.comparison(found))
    return 0


def _prefix(run_id: str) -> str:
    prefix = run_id.strip()
    if not prefix:
        raise ConfigurationError("the run's id is empty; write as much of its beginning as is unique")
    return prefix
