"""A running ``up`` with a judge that says hostile things, and the runs that its pages are looked at with."""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple

from browser.hostile import EVERYTHING, NAME, a_hostile_run, hostile_feedback
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Tracer, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, StatusCode, set_span_in_context
from serving import Up, an_up, get, http_exporter, scored

SECOND, MINUTE = 10**9, 60 * 10**9
PLAIN: Final = 60
"""Runs of the agent ``plain``, one a minute, the last of them a minute ago: more than a page."""
LONG: Final = 450
"""Steps of the run of ``long``, besides its head and its model call: three pages."""
CONFIG: Final = """
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 500ms}}
judge: {{base_url: "{judge}", model: scripted, concurrency: 2}}
agents:
  default:
    rubric: null
    checks:
      policies: [{{name: no_deletion, forbid: {{tool: delete_customer}}}}]
      limits: {{steps: {steps}}}
  judged: {{rubric: support}}
  {hostile}: {{rubric: support}}
"""


class Shop(NamedTuple):
    """The process, and its runs by agent."""

    up: Up
    runs: dict[str, list[dict[str, Any]]]
    """As the scoreboard has them, newest first."""

    @property
    def url(self) -> str:
        return self.up.http

    def run(self, agent: str) -> str:
        """The id of the agent's one run."""
        (one,) = self.runs[agent]
        return str(one["run_id"])


@contextmanager
def a_shop(folder: Path, *, plain: int = PLAIN, long: int = LONG) -> Iterator[Shop]:
    """Start it, and wait until all is graded."""
    config, data = folder / "tracegrade.yaml", folder / "data"
    with a_judge() as judge:
        config.write_text(CONFIG.format(data=data, judge=judge, steps=long, hostile=json.dumps(NAME)))
        with an_up(config, data) as up:
            expected = plain + 4
            with a_sender(up, "1.0", "production") as tracer:
                for at in range(plain):
                    a_plain_run(tracer, minutes_ago=at + 1, tools=("delete_customer",) if at % 10 == 0 else ("lookup_order",))
                a_team(tracer)
                a_long_run(tracer, long)
            with a_sender(up, "2.0", "staging") as tracer:
                a_plain_run(tracer, "judged", minutes_ago=0.5, tools=("lookup_order",))
            a_hostile_run(up)
            board = scored(up, expected)
            hostile = next(run for run in board["runs"] if run["cohort"]["agent"] == NAME)
            hostile_feedback(up, hostile["run_id"])
            rows = scored(up, expected)["runs"]
            yield Shop(up, {agent: [row for row in rows if row["cohort"]["agent"] == agent] for agent in _agents(rows)})


def _agents(rows: Sequence[dict[str, Any]]) -> set[str]:
    return {row["cohort"]["agent"] for row in rows}


@contextmanager
def a_sender(up: Up, version: str, environment: str, key: str = "") -> Iterator[Tracer]:
    """The SDK as a user sets it up; everything is sent when this ends."""
    resource = Resource.create({"service.name": "shop", "service.version": version, "deployment.environment.name": environment})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(http_exporter(up, key), max_queue_size=1 << 20, max_export_batch_size=512))
    tracer = provider.get_tracer("the-agent")
    assert isinstance(tracer, Tracer)
    yield tracer
    provider.shutdown()


def a_plain_run(tracer: Tracer, agent: str = "plain", *, minutes_ago: float, tools: Sequence[str]) -> None:
    """An agent looks something up and answers, in two seconds."""
    begin = time.time_ns() - int(minutes_ago * MINUTE)
    with_head = _span(tracer, f"invoke_agent {agent}", None, begin, _agent(agent))
    for number, tool in enumerate(tools):
        at = begin + (number + 1) * SECOND // 10
        _ended(
            _span(tracer, f"execute_tool {tool}", with_head, at, _tool(tool, {"order_id": "A-1"}, '{"status": "shipped"}')),
            at + SECOND // 10,
        )
    chat = _chat("Where is order A-1?", "Order A-1 has shipped.") | {
        "gen_ai.usage.input_tokens": 1200,
        "gen_ai.usage.output_tokens": 34,
    }
    _ended(_span(tracer, "chat m", with_head, begin + SECOND, chat), begin + 2 * SECOND)
    _ended(with_head, begin + 2 * SECOND)


def a_team(tracer: Tracer) -> None:
    """A lead has a researcher look, whose critic fails once; both are parts of the lead's run."""
    begin = time.time_ns() - 3 * MINUTE // 4
    lead = _span(tracer, "invoke_agent lead", None, begin, _agent("lead"))
    researcher = _span(tracer, "invoke_agent researcher", lead, begin + SECOND, _agent("researcher"))
    search = _span(
        tracer,
        "execute_tool search",
        researcher,
        begin + SECOND,
        _tool("search", {"query": "blue kettle", "limit": 3}, "three kettles found"),
    )
    _ended(search, begin + 2 * SECOND)
    critic = _span(tracer, "invoke_agent critic", researcher, begin + 2 * SECOND, _agent("critic"))
    broken = _span(tracer, "execute_tool check_price", critic, begin + 2 * SECOND, _tool("check_price", {"sku": "K-7"}, ""))
    broken.set_status(StatusCode.ERROR, "the price list is away")
    for span in (broken, critic, researcher):
        _ended(span, begin + 3 * SECOND)
    _ended(
        _span(tracer, "chat m", lead, begin + 3 * SECOND, _chat("Find me a kettle.", "The blue kettle is the best of three.")),
        begin + 4 * SECOND,
    )
    _ended(lead, begin + 4 * SECOND)


def a_long_run(tracer: Tracer, steps: int) -> None:
    """One call after the other, each of its own order; the last one deletes a customer, and is evidence of that."""
    begin = time.time_ns() - 2 * MINUTE
    head = _span(tracer, "invoke_agent long", None, begin, _agent("long"))
    for number in range(steps):
        at = begin + number * SECOND // 1000
        tool = "delete_customer" if number == steps - 1 else "lookup_order"
        _ended(
            _span(tracer, f"execute_tool {tool}", head, at, _tool(tool, {"order_id": f"A-{number}"}, f"order {number} is here")),
            at + 1000,
        )
    end = begin + steps * SECOND // 1000 + SECOND
    _ended(_span(tracer, "chat m", head, end, _chat("Go through all of them.", "All of them are here.")), end + SECOND)
    _ended(head, end + SECOND)


def _span(tracer: Tracer, name: str, parent: Span | None, at: int, attributes: dict[str, Any]) -> Span:
    context = set_span_in_context(parent) if parent is not None else None
    return tracer.start_span(name, context=context, start_time=at, attributes=attributes)


def _ended(span: Span, at: int) -> None:
    span.end(end_time=at)


def _agent(name: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, "gen_ai.conversation.id": f"talk-of-{name}"}


def _tool(name: str, arguments: dict[str, Any], result: str) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        **({"gen_ai.tool.call.result": result} if result else {}),
    }


def _chat(asked: str, said: str) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": asked}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": said}]}]),
    }


@contextmanager
def a_judge() -> Iterator[str]:
    """An endpoint that gives everything a 4, quotes what is there, and has hostile reasons."""

    class Judge(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            quote = "It is done." if "It is done." in asked else "shipped"
            verdict = json.dumps({"score": 4, "reason": f"Because {EVERYTHING}", "evidence": quote})
            message = {"role": "assistant", "content": verdict}
            reply = {
                "id": "r",
                "object": "chat.completion",
                "created": 1,
                "model": NAME,
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            }
            body = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Judge) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


def detail(shop: Shop, run_id: str) -> dict[str, Any]:
    """The run as the API has it."""
    found: dict[str, Any] = get(f"{shop.url}/api/runs/{run_id}").json
    return found
