"""The API reads more than once for one answer, while runs are written."""

from typing import Any, cast

from aiohttp.test_utils import make_mocked_request
from msgspec import json
from opentelemetry.metrics import NoOpMeter

from collectors.otlp.keys import Keys
from pipeline.apps.api import api_routes
from pipeline.runtime.telemetry import Telemetry
from pipeline.runtime.verifying import Verifier
from pipeline.scorers.prices import PriceTable
from sinks.clickhouse.board import Accounting
from sinks.clickhouse.store import Store


class Growing:
    """A store into which a run is written between any two reads."""

    def __init__(self) -> None:
        self._runs = 0

    async def scoreboard(self, *_: object) -> list[dict[str, Any]]:
        self._runs += 1
        return [{"run_id": str(number)} for number in range(self._runs)]

    async def accounting(self, _project: str) -> Accounting:
        self._runs += 1
        return Accounting(self._runs, self._runs, 0, 0, {}, 0, 0)


async def test_no_run_is_counted_that_is_not_shown() -> None:
    routes = api_routes(
        cast("Store", Growing()), Keys({}, "default"), Telemetry(NoOpMeter("test")), cast("Verifier", None), PriceTable()
    )
    (handler,) = (route.handler for route in routes if route.path == "/api/scoreboard")
    answer: Any = await cast("Any", handler)(make_mocked_request("GET", "/api/scoreboard"))
    told = json.decode(answer.body)
    assert told["accounting"]["received"] <= len(told["runs"])
