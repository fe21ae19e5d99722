"""No windows are an answer only where there can be some."""

from typing import cast

import pytest

from pipeline.apps.published import Published
from pipeline.config.tracegrade import TracegradeSettings
from pipeline.errors import ConfigurationError
from pipeline.model.time import HOUR, MINUTE
from pipeline.model.window import Window
from sinks.clickhouse.window_table import WindowTable

SETTINGS = TracegradeSettings.model_validate(
    {
        "agents": {"default": {"rubric": None, "checks": {"policies": [{"name": "no_deletion", "forbid": {"tool": "delete"}}]}}},
        "gates": [
            {"name": "hour", "kind": "floor", "dimension": "verdict", "raise_below": 0.5, "clear_above": 0.6, "window": "1h"}
        ],
    }
)


class Table:
    """A store without any window now, and with those of an earlier configuration."""

    async def latest(self, *_: object) -> list[Window]:
        return []

    async def stored(self, _project: str) -> set[tuple[str, int]]:
        return {("tone", 30 * MINUTE)}


async def latest(dimension: str, length_ns: int) -> list[Window]:
    return await Published.by(SETTINGS).latest(cast("WindowTable", Table()), "default", dimension, length_ns, "", 5)


@pytest.mark.parametrize("dimension", ["verdict", "no_deletion", "tone"])
@pytest.mark.parametrize("length_ns", [5 * MINUTE, 30 * MINUTE, HOUR])
async def test_what_is_configured_or_stored_may_have_none(dimension: str, length_ns: int) -> None:
    assert await latest(dimension, length_ns) == []


async def test_a_dimension_that_nothing_has_is_refused_and_those_that_there_are_are_named() -> None:
    with pytest.raises(ConfigurationError, match=r"dimension 'no_deletoin'; did you mean `no_deletion`\? they have: ") as refused:
        await latest("no_deletoin", 5 * MINUTE)
    named = str(refused.value).partition("they have: ")[2].split(", ")
    assert named == sorted(named)
    assert {"no_deletion", "tone", "verdict"} <= set(named)


async def test_a_length_that_no_window_has_is_refused_and_those_that_there_are_are_named() -> None:
    with pytest.raises(ConfigurationError, match="no windows of 7m are published, but of 5m, 30m, 1h; "):
        await latest("verdict", 7 * MINUTE)
