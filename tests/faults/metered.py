"""Metered: an endpoint for the product's own metrics, to hold them against the ledger (I9)."""

from collections.abc import Mapping
from typing import Any, Final, Self

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

INSTANCE: Final = "service.instance.id"
EVERY_MS: Final = 1000


class Metered:
    """Listens while its context lasts, and keeps the last value of each counter of each process."""

    def __init__(self) -> None:
        self.url = ""
        self._last: dict[tuple[str, str, tuple[tuple[str, str], ...]], float] = {}
        application = web.Application()
        application.router.add_post("/v1/metrics", self._take)
        self._runner = web.AppRunner(application, access_log=None)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1/metrics"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def environment(self, instance: str) -> Mapping[str, str]:
        """Return what has a process tell its metrics here, under a name of its own."""
        return {
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": self.url,
            "OTEL_METRIC_EXPORT_INTERVAL": f"{EVERY_MS}",
            "OTEL_RESOURCE_ATTRIBUTES": f"{INSTANCE}={instance}",
        }

    def total(self, name: str, of: str) -> int:
        """Add up a counter over all processes of a command and all labels. One that was killed has told what it knew a second before."""
        last = dict(self._last).items()
        return round(sum(value for (instance, metric, _), value in last if metric == name and instance.startswith(f"{of}-")))

    async def _take(self, request: web.Request) -> web.Response:
        said = ExportMetricsServiceRequest.FromString(await request.read())
        for one in said.resource_metrics:
            instance = next((pair.value.string_value for pair in one.resource.attributes if pair.key == INSTANCE), "")
            for metric in (metric for scope in one.scope_metrics for metric in scope.metrics):
                for point in metric.sum.data_points:
                    labels = tuple(sorted((pair.key, pair.value.string_value) for pair in point.attributes))
                    self._last[instance, metric.name, labels] = _value(point)
        return web.Response(body=b"", content_type="application/x-protobuf")


def _value(point: Any) -> float:
    return float(point.as_int if point.WhichOneof("value") == "as_int" else point.as_double)
