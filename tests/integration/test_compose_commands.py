"""docker-compose.yml without Docker: every command of ours in it runs, with its arguments, its environment and its health check.

The broker is a real one and ClickHouse is the tests' front. Only addresses differ: each process reads a copy of the file that the
containers share, with the hosts of this machine in it and ports of its own.
"""

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from clickhouse_front import Front
from cluster import Process
from foreign_writers import write
from kafka_broker import Broker
from machine import HERE, any_free_port
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from ruamel.yaml import YAML
from serving import Up, an_agent_runs, eventually, grpc_exporter, http_exporter, tracegrade
from unit.deploy.composition import ROOT, filled_in, ours

from pipeline.config.load import load

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SHARED: Final = "/etc/tracegrade/tracegrade.yaml"
ENVIRONMENT: Final = filled_in()


class Container:
    """One process of a service, on this machine instead of in a container."""

    def __init__(self, name: str, config: Path, judge_port: int) -> None:
        self.service: dict[str, Any] = ours()[name]
        self.config = config
        addresses = {SHARED: str(config), "0.0.0.0": HERE, "8790": str(judge_port)}  # noqa: S104 - the address that is replaced
        self.arguments: list[str] = [addresses.get(word, word) for word in self.service["command"]]
        self.environment: dict[str, str] = self.service.get("environment", {})
        self.port = judge_port
        self.process: Process | None = None

    def start(self) -> Process:
        self.process = Process(*self.arguments, environment=self.environment)
        return self.process

    def healthy(self) -> bool:
        """Whether the service's own health check passes, asked at the port that this process has."""
        kind, program, option, code = self.service["healthcheck"]["test"]
        assert (kind, program, option) == ("CMD", "python", "-c")
        asking, replaced = re.subn(r"(?<='127\.0\.0\.1', )\d+", str(self.port), code)
        assert replaced == 1
        return subprocess.run([sys.executable, "-c", asking], capture_output=True, check=False, timeout=30).returncode == 0

    def stop(self) -> int:
        assert self.process is not None
        return self.process.stop()


class Installation:
    """What docker-compose.yml describes."""

    def __init__(self, broker: Broker, front: Front, folder: Path) -> None:
        self._shared = YAML(typ="safe").load((ROOT / "deploy" / "compose" / "tracegrade.yaml").read_text(encoding="utf-8"))
        self._folder = folder
        self._judge_port = any_free_port()
        self._shared["kafka"]["brokers"] = [broker.address]
        self._shared["store"]["url"] = front.url
        self._shared["receiver"] |= {"host": HERE, "grpc_port": 0, "http_port": 0}
        self._shared["worker"] |= {"host": HERE, "http_port": 0}
        self._shared["bridge"] |= {"host": HERE, "http_port": 0}
        self._shared["judge"]["base_url"] = f"http://{HERE}:{self._judge_port}/v1"
        self.containers = {name: self._containers(name) for name in ours()}

    def _containers(self, name: str) -> list[Container]:
        config = self._folder / name / "tracegrade.yaml"
        config.parent.mkdir()
        with config.open("w", encoding="utf-8") as file:
            YAML(typ="safe").dump(self._shared, file)
        replicas = ours()[name]["deploy"].get("replicas", 1)
        return [Container(name, config, self._judge_port) for _ in range(replicas)]

    def one(self, name: str) -> Container:
        return self.containers[name][0]


@pytest.fixture
def installation(empty_broker: Broker, tmp_path: Path) -> Iterator[Installation]:
    (tmp_path / "store").mkdir()
    with Front(tmp_path / "store", user="tracegrade", password=ENVIRONMENT["CLICKHOUSE_PASSWORD"]) as front:
        yield Installation(empty_broker, front, tmp_path)


def test_every_command_of_the_compose_file_does_its_part(installation: Installation, broker: Broker) -> None:
    topics = installation.one("topics")
    made = tracegrade(*topics.arguments, environment=topics.environment)
    assert made.code == 0, made.err

    with ExitStack() as stack:
        judge = installation.one("judge")
        stack.enter_context(judge.start())
        eventually(judge.healthy)

        collectors: list[Up] = []
        for name in ("collector-1", "collector-2"):
            collector = installation.one(name)
            process = stack.enter_context(collector.start())
            told = process.says("collecting")
            collector.port = int(told["http"].rpartition(":")[2])
            collectors.append(Up(process.process, collector.config, told["http"], told["grpc"]))

        bridge = installation.one("bridge")
        bridge.port = int(stack.enter_context(bridge.start()).says("health")["url"].rpartition(":")[2])

        workers = installation.containers["worker"]
        for worker in workers:
            process = stack.enter_context(worker.start())
            worker.port = int(process.says("health")["url"].rpartition(":")[2])
        running = [judge, installation.one("collector-1"), installation.one("collector-2"), bridge, *workers]
        for container in running:
            eventually(container.healthy)

        key = ENVIRONMENT["TRACEGRADE_KEY"]
        first, second = collectors
        assert answer_without_a_key(first) == http.HTTPStatus.UNAUTHORIZED
        sent = {
            an_agent_runs(grpc_exporter(first, key), "refunds", order="A-1"),
            an_agent_runs(http_exporter(second, key), "orders", order="A-2"),
        }
        sent.add(an_agent_writes_to(broker.address, bridge, "returns"))
        board = eventually(lambda: scored(workers[0], len(sent)))

        assert {run["trace_id"] for run in board["runs"]} == sent
        assert {run["cohort"]["agent"] for run in board["runs"]} == {"refunds", "orders", "returns"}
        # A judge that nobody has compared with people is heard and decides nothing.
        assert board["accounting"]["unresolved"] == {"insufficient_evidence": 3}
        for run in board["runs"]:
            known = tracegrade("run", run["run_id"], "--json", environment=workers[0].environment, cwd=workers[0].config.parent)
            assert known.json["judgments"], "the judge was not asked"

        assert all(container.healthy() for container in running)
        ended = {" ".join(container.arguments): container.stop() for container in reversed(running)}
        assert set(ended.values()) == {0}, ended
        assert not any(container.healthy() for container in running), "a health check passes where nothing listens"


def answer_without_a_key(collector: Up) -> int:
    """Return the status with which a sender that has no key is turned away."""
    connection = http.client.HTTPConnection(collector.http.removeprefix("http://"), timeout=60)
    try:
        connection.request("POST", "/v1/traces", b"", {"Content-Type": "application/x-protobuf"})
        return connection.getresponse().status
    finally:
        connection.close()


def an_agent_writes_to(address: str, bridge: Container, agent: str) -> str:
    """Have an agent's spans on the topic that the bridge reads, as a Collector puts them there. Returns the trace id."""
    exported: list[ReadableSpan] = []

    class Keep(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            exported.extend(spans)
            return SpanExportResult.SUCCESS

    trace_id = an_agent_runs(Keep(), agent, order="A-3")
    (topic,) = load(bridge.config).bridge.topics
    write(address, topic, [encode_spans(exported).SerializeToString()])
    return trace_id


def scored(worker: Container, runs: int) -> dict[str, Any] | None:
    """What `docker compose exec worker tracegrade scoreboard` prints, once so many runs are graded and nothing is outstanding."""
    said = tracegrade("scoreboard", "--json", environment=worker.environment, cwd=worker.config.parent)
    assert said.code == 0, said.err
    board: dict[str, Any] = said.json
    accounting = board["accounting"]
    done = accounting["received"] == runs and not accounting["pending"] and not accounting["open_traces"]
    return board if done else None
