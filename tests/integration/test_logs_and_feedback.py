"""Log records and feedback through a running ``tracegrade up``: what a run said stands in log records, and what people say comes later."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context
from serving import Up, an_up, eventually, get, http_exporter, scored, tracegrade

CONFIG = """
store: {{path: {data}}}
receiver: {{http_port: 0, grpc_port: 0}}
assemble: {{quiet_period: 300ms}}
agents:
  default:
    sampling: {{rate: 0}}
"""
EVENTS = "gen_ai.evaluation"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("up")
    config = folder / "tracegrade.yaml"
    config.write_text(CONFIG.format(data=folder / "data"))
    with an_up(config, folder / "data") as running:
        yield running


class Agent:
    """An agent whose instrumentation writes messages into log records, as the conventions before 1.37 have it."""

    def __init__(self, up: Up, name: str) -> None:
        self.name = name
        resource = Resource.create({"service.name": "shop"})
        self.traces = TracerProvider(resource=resource)
        self.traces.add_span_processor(SimpleSpanProcessor(http_exporter(up)))
        self.logs = LoggerProvider(resource)
        self.logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(endpoint=f"{up.http}/v1/logs")))

    def runs(self, conversation: str) -> SpanContext:
        """Do its work; return where its model call is."""
        tracer, logger = self.traces.get_tracer("the-agent"), self.logs.get_logger("the-agent")
        said = {"gen_ai.agent.name": self.name, "gen_ai.conversation.id": conversation}
        with (
            tracer.start_as_current_span("invoke_agent", attributes={"gen_ai.operation.name": "invoke_agent"} | said),
            tracer.start_as_current_span(
                "chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
            ) as chat,
        ):
            logger.emit(LogRecord(event_name="gen_ai.user.message", body={"content": "Where is my order?"}))
            logger.emit(LogRecord(event_name="gen_ai.choice", body={"message": {"content": "It has shipped."}}))
            logger.emit(LogRecord(body="GET /orders 200"))
        return chat.get_span_context()

    def is_evaluated(self, where: SpanContext, **attributes: Any) -> None:
        """Have somebody else evaluate a span, by the id it is known by."""
        known = SpanContext(where.trace_id, where.span_id, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        context = set_span_in_context(NonRecordingSpan(known))
        named = {f"{EVENTS}.{key.replace('_', '.')}": value for key, value in attributes.items()}
        self.logs.get_logger("evaluator").emit(LogRecord(context=context, event_name=f"{EVENTS}.result", attributes=named))

    def stops(self) -> None:
        self.traces.shutdown()
        self.logs.shutdown()


@pytest.fixture
def agent(up: Up, request: pytest.FixtureRequest) -> Iterator[Agent]:
    made = Agent(up, request.node.name)
    yield made
    made.stops()


def the_run(up: Up, agent: Agent) -> dict[str, Any]:
    """The one run of an agent, once it is there."""

    def found() -> dict[str, Any] | None:
        rows = get(f"{up.http}/api/scoreboard?agent={agent.name}").json["runs"]
        return rows[0] if rows else None

    row: dict[str, Any] = eventually(found)
    detail: dict[str, Any] = get(f"{up.http}/api/runs/{row['run_id']}").json
    return detail


def kept(up: Up, agent: Agent) -> dict[str, Any] | None:
    """The run, once it is kept for being disliked."""
    run = the_run(up, agent)
    return run if run["sampling_plan"] == "keep:thumbs_down" else None


def test_a_run_says_what_its_log_records_say_and_a_line_of_a_log_is_ignored(up: Up, agent: Agent) -> None:
    before = get(f"{up.http}/api/telemetry").json
    agent.runs("talk")
    run = the_run(up, agent)
    assert (run["request"], run["answer"]) == ("Where is my order?", "It has shipped.")
    counted = get(f"{up.http}/api/telemetry").json
    for name, count in (("received", 2), ("ignored", 1)):
        metric = f"tracegrade.log_records.{name}"
        assert counted[metric] - before.get(metric, 0) == count


def test_an_evaluation_by_others_that_comes_later_has_a_run_judged_and_is_no_judgment(up: Up, agent: Agent) -> None:
    where = agent.runs("talk")
    run = the_run(up, agent)
    assert run["line"]["run_class"] == "unsampled"
    agent.is_evaluated(where, name="tone", score_label="fail", explanation="rude")
    later = eventually(lambda: kept(up, agent))
    assert (later["line"]["run_class"], later["line"]["class_reason"]) == ("unresolved", "no_judge")
    assert (later["version"] > run["version"], later["judgments"]) == (True, [])


@pytest.mark.parametrize("of", ["run", "trace", "conversation"])
def test_a_thumbs_down_on_a_closed_run_makes_a_new_version_of_it(of: str, up: Up, agent: Agent) -> None:
    where = agent.runs(f"talk of {of}")
    run = the_run(up, agent)
    named = {"run": run["line"]["run_id"], "trace": f"{where.trace_id:032x}", "conversation": f"talk of {of}"}
    command = (
        "feedback",
        named[of],
        "--of",
        of,
        "--value",
        "down",
        "--comment",
        "not so",
        "--author",
        "ann",
        "--endpoint",
        up.http,
    )
    said = tracegrade(*command, "--id", f"key-{of}")
    assert said.code == 0, said.err
    assert said.out.startswith("stored feedback -1 on ")
    later = eventually(lambda: kept(up, agent))
    assert later["version"] > run["version"]
    assert [(one["value"], one["author"], one["comment"]) for one in later["feedback"]] == [(-1.0, "ann", "not so")]
    again = tracegrade(*command, "--id", f"key-{of}", "--json")
    assert again.json["accepted"] == 1
    assert len(the_run(up, agent)["feedback"]) == 1


def test_an_annotation_on_a_span_of_another_trace_that_links_to_it_reaches_the_run(up: Up, agent: Agent) -> None:
    where = agent.runs("talk")
    assert the_run(up, agent)["line"]["run_class"] == "unsampled"
    said = {f"annotations.0.annotation.{name}": value for name, value in {"name": "tone", "label": "thumbs_down"}.items()}
    carrier = agent.traces.get_tracer("annotator").start_span(
        "annotation", context=Context(), links=[Link(where)], attributes=said
    )
    carrier.end()
    assert carrier.get_span_context().trace_id != where.trace_id
    later = eventually(lambda: kept(up, agent))
    assert [(one["value"], one["author"], one["comment"]) for one in later["feedback"]] == [
        (-1.0, "evaluation tone", "thumbs_down")
    ]


def test_the_runs_of_a_conversation_are_added_up_and_shown_in_order(up: Up, agent: Agent) -> None:
    name = "a talk / of 'two' turns"
    for _ in range(2):
        agent.runs(name)
    eventually(lambda: get(f"{up.http}/api/scoreboard?agent={agent.name}").json["runs"][1:])
    (one,) = tracegrade("conversations", "--agent", agent.name, "--json", "-c", up.config).json
    assert (one["id"], one["runs"], one["agents"]) == (name, 2, [agent.name])
    assert (one["outcomes"]["insufficient_evidence"], one["input_tokens"], one["without_tokens"]) == (2, None, 2)
    detail = tracegrade("conversation", name, "--json", "-c", up.config).json
    assert detail["conversation"] == one
    first, second = detail["turns"]
    assert (first["start_ns"] < second["start_ns"], first["answer"]) == (True, "It has shipped.")
    shown = tracegrade("conversation", name, "-c", up.config)
    assert (shown.code, "2 insufficient evidence" in shown.out, "–, – (not told by 2 runs)" in shown.out) == (0, True, True)
    unknown = tracegrade("conversation", "nobody's", "-c", up.config)
    assert (unknown.code, "tracegrade conversations lists those it has" in unknown.err) == (2, True)


def test_feedback_may_come_before_the_first_span(up: Up, agent: Agent) -> None:
    trace_id = "ab" * 16
    assert tracegrade("feedback", trace_id, "--of", "trace", "--value", "-1", "--endpoint", up.http).code == 0
    context = SpanContext(int(trace_id, 16), 0xABCD, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    tracer = agent.traces.get_tracer("the-agent")
    said = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": agent.name,
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Done."}]}]),
    }
    tracer.start_span("invoke_agent", context=set_span_in_context(NonRecordingSpan(context)), attributes=said).end()
    assert eventually(lambda: kept(up, agent))["answer"] == "Done."


def test_a_run_that_nobody_knows_is_told_as_a_sentence(up: Up, tmp_path: Path) -> None:
    said = tracegrade("feedback", "00" * 16, "--value", "up", "--endpoint", up.http)
    assert (said.code, said.out) == (2, "")
    assert "try again then, or send its trace_id" in said.err
    away = tracegrade("feedback", "00" * 16, "--value", "up", "--endpoint", "http://127.0.0.1:1", cwd=tmp_path)
    assert away.code == 2
    assert "does not answer" in away.err
    scored(up, 0)
