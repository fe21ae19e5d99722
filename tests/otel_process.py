"""A running OpenTelemetry Collector for tests, under ``deploy/otel-collector.yaml`` or another file that takes the same variables."""

import http.client
import os
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from machine import HERE, any_free_port, end, tail_of, until_ready
from otel_collector_build import binary

DEPLOYED: Final = Path(__file__).parents[1] / "deploy" / "otel-collector.yaml"
START_SECONDS: Final = 60.0


class OtelCollector:
    """One Collector. Its ports last until it is closed, over any number of restarts."""

    def __init__(self, brokers: str, folder: Path, *, config: Path = DEPLOYED, topic: str = "otlp_spans") -> None:
        """Nothing is started. Builds the binary where there is none."""
        self._binary = binary()
        self._config = config
        self.log = folder / "otel-collector.log"
        grpc, http, health = (any_free_port() for _ in range(3))
        self.grpc = f"{HERE}:{grpc}"
        self.http = f"http://{HERE}:{http}"
        self._health = health
        self._environment = {
            "KAFKA_BROKERS": brokers,
            "KAFKA_TOPIC": topic,
            "COLLECTOR_GRPC": self.grpc,
            "COLLECTOR_HTTP": f"{HERE}:{http}",
            "COLLECTOR_HEALTH": f"{HERE}:{health}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the running Collector."""
        if self._process is None:
            raise RuntimeError("the Collector is not running")
        return self._process.pid

    def start(self) -> None:
        """Start, and return when it says that it is well."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._binary), "--config", str(self._config)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, **self._environment},
            )
        until_ready("the Collector", self._process, self._is_well, self.tail, START_SECONDS)

    def kill(self) -> None:
        """End it as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it with SIGTERM."""
        self._end(signal.SIGTERM)

    def tail(self, lines: int = 30) -> str:
        """Return the end of what it wrote."""
        return tail_of(self.log, lines)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    def _is_well(self) -> bool:
        connection = http.client.HTTPConnection(HERE, self._health, timeout=2)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False
        finally:
            connection.close()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, how)
