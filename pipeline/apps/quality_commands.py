"""What ``tracegrade windows`` and ``tracegrade quality`` do: what runs add up to, from a running ``up`` or from the store itself."""
# ruff: noqa: PLC0415 - a command imports what it needs: the engine alone takes seconds

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from pipeline.apps.choice import print_choice
from pipeline.apps.commands import ask, print_json, print_line
from pipeline.errors import ConfigurationError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeline.config.tracegrade import TracegradeSettings
    from pipeline.runtime.evaluations import Evaluations
    from sinks.clickhouse.store import Store

UNEQUAL = 1
"""Exit code where a score could not be made again as it is stored."""


def windows(config: Path | None, dimension: str, length: str, agent: str, limit: int, *, json: bool) -> int:
    """Show the latest windows of a dimension, each rate with all that belongs beside it."""
    from pipeline.apps import show_quality
    from pipeline.apps.published import Published
    from pipeline.apps.window_lines import length_of, lines_of
    from pipeline.config.load import load
    from pipeline.judges import calibration

    async def direct(store: "Store", project: str) -> Any:
        found = await Published.by(settings).latest(store.windows, project, dimension, length_ns, agent, limit)
        return lines_of(found, calibration.load(settings.judge.calibration))

    settings, length_ns = load(config), length_of(length)
    path = f"/api/windows?{urlencode({'dimension': dimension, 'length': length, 'agent': agent, 'limit': limit})}"
    found = ask(settings, path, direct)
    return _told(found, lambda: show_quality.windows(found), settings, json=json)


def latest(config: Path | None, agent: str, limit: int, *, json: bool) -> int:
    """Show the quality scores of the windows that ended last."""
    from pipeline.apps import show_quality
    from pipeline.config.load import load

    settings = load(config)
    path = f"/api/quality?{urlencode({'agent': agent, 'limit': limit})}"
    found = ask(settings, path, lambda store, project: evaluations_of(settings, store).latest(project, agent, limit))
    return _told(found, lambda: show_quality.evaluations(found), settings, json=json)


def one(config: Path | None, name: str, *, json: bool) -> int:
    """Show one evaluation with everything that it was made of."""
    from pipeline.apps import show_quality
    from pipeline.config.load import load

    settings, prefix = load(config), _prefix(name)
    path = f"/api/quality/{quote(prefix, safe='')}"
    found = ask(settings, path, lambda store, project: evaluations_of(settings, store).one(project, prefix))
    return _told(found, lambda: show_quality.evaluation(found), settings, json=json)


def spec(config: Path | None, *, json: bool) -> int:
    """Show the policies in force."""
    from pipeline.apps import show_quality
    from pipeline.config.load import load

    async def direct(store: "Store", _: str) -> Any:
        return evaluations_of(settings, store).policies

    settings = load(config)
    found = ask(settings, "/api/quality/spec", direct)
    return _told(found, lambda: show_quality.policies(found), settings, json=json)


def recompute(config: Path | None, name: str, *, json: bool) -> int:
    """Make one evaluation again and say whether it is equal."""
    from pipeline.apps import show_quality
    from pipeline.config.load import load

    settings, prefix = load(config), _prefix(name)
    path = f"/api/quality/recompute/{quote(prefix, safe='')}"
    found = ask(settings, path, lambda store, project: evaluations_of(settings, store).again(project, prefix), body={})
    if json:
        print_json(found)
    else:
        for line in show_quality.reevaluation(found):
            print_line(line)
    return UNEQUAL if found["differences"] or found["why_not"] else 0


def evaluations_of(settings: "TracegradeSettings", store: "Store") -> "Evaluations":
    """Return the evaluations of a store, under the configuration that is in force."""
    from pipeline.config.grading import quality_policies
    from pipeline.config.tracegrade import DEFAULT
    from pipeline.runtime.evaluations import Evaluations

    return Evaluations(store, quality_policies(settings), DEFAULT)


def _told(found: Any, shown: "Callable[[], RenderableType]", settings: "TracegradeSettings", *, json: bool) -> int:
    from pipeline.apps import show

    if json:
        print_json(found)
    else:
        show.console().print(shown())
        print_choice(settings)
    return 0


def _prefix(name: str) -> str:
    prefix = name.strip()
    if not prefix:
        raise ConfigurationError("the evaluation's id is empty; write as much of its beginning as is unique")
    return prefix
