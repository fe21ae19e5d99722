"""The product as a process: ``tracegrade`` with its arguments, a running ``up``, and an agent that the real exporters report on."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from pipeline.apps import served

PATIENCE_S = 60
COMMAND_S = 240
"""What a command may take: a whole demo is 20 s of work on a machine of its own."""


class Said(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def tracegrade(*arguments: str | Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None) -> Said:
    """Run a command to its end."""
    ended = subprocess.run(
        [sys.executable, "-m", "pipeline.apps", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=COMMAND_S,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), **(environment or {})},
        cwd=cwd,
    )
    return Said(ended.returncode, ended.stdout, ended.stderr)


class Up(NamedTuple):
    """A running ``tracegrade up``."""

    process: subprocess.Popen[str]
    config: Path
    http: str
    grpc: str

    def ends(self, number: signal.Signals) -> float:
        """Send a signal and return how many seconds the end took."""
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        return time.monotonic() - began


@contextmanager
def an_up(config: Path, data: Path, environment: Mapping[str, str] | None = None) -> Iterator[Up]:
    """Start ``up`` and wait until it can be found through its folder; kill it at the end if it still runs."""
    with subprocess.Popen(
        [sys.executable, "-m", "pipeline.apps", "up", "-c", str(config)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    ) as process:
        try:
            assert process.stderr is not None
            told = json.loads(process.stderr.readline() or '"up ended by itself"')
            while told["event"] != "up":
                told = json.loads(process.stderr.readline() or '"up ended by itself"')
            eventually(lambda: served.address(data) == told["http"])
            yield Up(process, config, told["http"], told["grpc"])
        finally:
            if process.poll() is None:
                process.kill()


def eventually(holds: Any, within_s: float = PATIENCE_S, otherwise: Callable[[], str] = str) -> Any:
    """Wait until something holds, and return it; ``otherwise`` says how things are instead where it never does."""
    until = time.monotonic() + within_s
    while not (value := holds()):
        assert time.monotonic() < until, f"it did not come to hold within {within_s:.0f} s\n{otherwise()}"
        time.sleep(0.05)
    return value


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


def get(url: str, authorization: str = "") -> Answer:
    """Ask a server, whatever it answers."""
    request = urllib.request.Request(url, headers={"Authorization": authorization} if authorization else {})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310
            return Answer(answer.status, dict(answer.headers), answer.read().decode())
    except urllib.error.HTTPError as error:
        return Answer(error.code, dict(error.headers), error.read().decode())


def grpc_exporter(up: Up, key: str = "") -> SpanExporter:
    return GrpcExporter(endpoint=f"http://{up.grpc}", headers={"authorization": f"Bearer {key}"} if key else None)


def http_exporter(up: Up, key: str = "") -> SpanExporter:
    return HttpExporter(endpoint=f"{up.http}/v1/traces", headers={"authorization": f"Bearer {key}"} if key else None)


def an_agent_runs(exporter: SpanExporter, agent: str, *, order: str = "A-1", tools: Sequence[str] = ("lookup_order",)) -> str:
    """Have an instrumented agent do its work, with the SDK of its user. Returns the trace id."""
    provider = TracerProvider(resource=Resource.create({"service.name": "shop"}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = provider.get_tracer("the-agent")
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Where is order {order}?"}]}]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": f"Order {order} has shipped."}]}]
    with tracer.start_as_current_span(
        "invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    ) as head:
        for tool in tools:
            attributes = {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": tool,
                "gen_ai.tool.call.arguments": json.dumps({"order_id": order}),
                "gen_ai.tool.call.result": json.dumps({"order_id": order, "status": "shipped"}),
            }
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=attributes):
                pass
        attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps(asked),
            "gen_ai.output.messages": json.dumps(said),
        }
        with tracer.start_as_current_span("chat m", attributes=attributes):
            pass
    provider.shutdown()
    return f"{head.get_span_context().trace_id:032x}"


def scored(up: Up, runs: int, key: str = "") -> dict[str, Any]:
    """Wait until so many runs are scored, and return the scoreboard."""

    def board() -> dict[str, Any] | None:
        answer: dict[str, Any] = get(f"{up.http}/api/scoreboard", f"Bearer {key}" if key else "").json
        accounting = answer["accounting"]
        done = accounting["received"] >= runs and not accounting["pending"] and not accounting["open_traces"]
        return answer if done else None

    found: dict[str, Any] = eventually(board)
    return found
