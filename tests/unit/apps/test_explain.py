"""``tracegrade explain``: what recorded traces are understood as, by the stages that grade them, for people and for programs."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import T0, a_log_record, a_span
from recordings import CORPORA, recordings, runs_of
from rich.console import Console
from serving import tracegrade

from collectors.dialects import BUILT_IN
from collectors.replay.arrived import arrived
from pipeline.apps.explain.explanation import Explanation, explained
from pipeline.apps.explain.terminal import shown
from pipeline.apps.explain.unused import Unused, unused
from pipeline.apps.explain_command import explain, plain
from pipeline.errors import ConfigurationError
from pipeline.model.span import Event, Span
from pipeline.model.step import StepKind
from pipeline.model.time import SECOND

LIVE = CORPORA / "live"
ONE_OF_EACH = {
    "vercel": LIVE / "vercel-ai-sdk-6" / "handoff.jsonl",
    "pydantic_ai": LIVE / "pydantic-ai" / "tool_error_recovers_modelretry.jsonl",
    "langfuse": CORPORA / "langfuse-framework-traces" / "pydantic-ai-tools-2025-12-04.json",
    "openinference": LIVE / "langgraph" / "parallel_calls.jsonl",
    "openllmetry": LIVE / "langchain-openllmetry" / "handoff.jsonl",
    "genai": LIVE / "openai-v2" / "refund_ok_rootspan.jsonl",
    "adk": LIVE / "adk" / "parallel_calls.jsonl",
    "strands": LIVE / "strands" / "refund_ok.jsonl",
}


def explanation_of(*spans: Span) -> Explanation:
    return explained(spans, (), BUILT_IN)


def of_file(*paths: Path) -> Explanation:
    return explained(*arrived(paths), BUILT_IN)


def printed(explanation: Explanation, width: int = 160) -> str:
    """What a terminal of this width shows."""
    console = Console(file=StringIO(), width=width, markup=False, emoji=False, highlight=False, color_system=None)
    console.print(shown(explanation, {dialect.name: dialect for dialect in BUILT_IN.dialects}))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def an_agent(number: int = 1, parent: int = 0, **fields: Any) -> Span:
    known = {
        "attributes": {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"},
        "name": "invoke_agent support",
    }
    return a_span(f"{number:016x}", f"{parent:016x}" if parent else "", **{**known, **fields})


@pytest.mark.parametrize("path", recordings()[::15], ids=lambda path: path.relative_to(CORPORA).as_posix())
def test_runs_are_those_that_are_graded(path: Path) -> None:
    spans, logs = arrived([path])
    explanation = explained(spans, logs, BUILT_IN)
    assert [note.run for note in explanation.runs] == runs_of([*spans, *logs])
    assert {note.span_id for note in explanation.spans} == {span.span_id for span in spans}


@pytest.mark.parametrize("dialect", ONE_OF_EACH)
def test_one_file_of_each_dialect_is_shown_with_its_rule_its_calls_and_its_answer(dialect: str) -> None:
    explanation = of_file(ONE_OF_EACH[dialect])
    text = printed(explanation)
    (rule,) = {note.rule for note in explanation.spans if note.dialect == dialect} or {""}
    assert rule
    assert rule in text
    for note in explanation.runs:
        assert note.run.place.cohort.agent in text
        assert note.run.answer is not None
        assert note.run.answer[:40] in text
        assert all(call.name in text for call in note.run.tool_calls)
    assert "What is missing" in text


def test_what_is_in_no_run_says_why() -> None:
    parts = (
        an_agent(1),
        an_agent(2, 1, attributes={"openinference.span.kind": "EVALUATOR"}, name="judge"),
        an_agent(3, 2, attributes={"gen_ai.operation.name": "chat"}, name="chat of the judge"),
        an_agent(4, attributes={}, scope_name="crewai.telemetry", name="Crew Created"),
        an_agent(5, attributes={"gen_ai.operation.name": "create_agent"}, name="create_agent"),
        an_agent(6, attributes={}, scope_name="http", name="GET /"),
        an_agent(7, 1, attributes={}, scope_name="http", name="GET /below"),
    )
    notes = {note.name: note for note in explanation_of(*parts).spans}
    assert {name: note.left_out for name, note in notes.items()} == {
        "invoke_agent support": "",
        "judge": "an evaluation",
        "chat of the judge": "it is below a span that is no part of a run",
        "Crew Created": "product telemetry of CrewAI",
        "create_agent": "in genai such a span is no part of a run",
        "GET /": "it is above the run, or beside it",
        "GET /below": "",
    }
    assert notes["judge"].rule == notes["Crew Created"].rule == ""
    assert (notes["GET /below"].what, notes["GET /below"].dialect) == ("not recognised", "")
    text = printed(explanation_of(*parts))
    assert "in no run: product telemetry of CrewAI" in text
    assert "scopes: http" in text


def test_a_trace_without_an_agent_says_that_there_is_no_run() -> None:
    explanation = explanation_of(an_agent(attributes={"http.method": "GET"}, name="GET /"))
    assert explanation.runs == ()
    (note,) = explanation.spans
    assert note.left_out == "its trace holds no agent, no model call and no tool call"
    assert "No run: no span in here is an agent's, a model call or a tool call." in printed(explanation)


def test_what_spans_are_is_said_in_words() -> None:
    said = {
        "chat": "model call gpt-x",
        "execute_tool": "tool call lookup",
        "invoke_agent": "agent support",
        "invoke_workflow": "orchestration",
        "retrieval": "retrieval",
        "plan": "wrapper",
        "guardrail_check": "guardrail",
        "agent_handoff": "hand-over transfer_to_refunds",
        "embeddings": "other: counts for nothing",
    }
    named = {
        "gen_ai.agent.name": "support",
        "gen_ai.response.model": "gpt-x",
        "gen_ai.tool.name": "lookup",
        "gen_ai.handoff.to_agent": "refunds",
    }
    spans = [
        an_agent(number, name=operation, attributes=named | {"gen_ai.operation.name": operation})
        for number, operation in enumerate(said, start=1)
    ]
    assert {note.name: note.what for note in explanation_of(*spans).spans} == said


def test_spans_stand_as_a_tree_siblings_by_start() -> None:
    def at(number: int, parent: int, second: int) -> Span:
        return an_agent(number, parent, name=f"s{number}", start_ns=T0 + second * SECOND)

    notes = explanation_of(at(5, 3, 1), at(4, 1, 9), at(2, 1, 3), at(3, 1, 2), at(1, 0, 4)).spans
    assert [(note.name, note.depth) for note in notes] == [("s1", 0), ("s3", 1), ("s5", 2), ("s2", 1), ("s4", 1)]


@pytest.mark.parametrize("parents", [{1: 1}, {1: 2, 2: 1}, {1: 2, 2: 3, 3: 1, 4: 1}])
def test_a_span_that_is_its_own_ancestor_is_shown_once(parents: dict[int, int]) -> None:
    spans = [an_agent(number, parent) for number, parent in parents.items()]
    assert sorted(note.span_id for note in explanation_of(*spans).spans) == sorted(span.span_id for span in spans)


def test_attributes_that_made_no_difference_are_told_by_dialect_with_indices_as_n() -> None:
    llm = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-x", "mine.0.x": 1, "mine.1.x": 2, "http.method": "GET"}
    llm |= {f"llm.input_messages.{index}.message.{key}": "user" for index in (0, 1) for key in ("role", "content")}
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.response.model": "gpt-x",
        "http.method": "GET",
    }
    spans = [a_span(attributes=llm), a_span("b1" * 8, attributes=chat), a_span("b2" * 8, attributes={"only": 1})]
    assert unused(spans, BUILT_IN.read) == (
        Unused("genai", "gen_ai.operation.name", 1),  # the model says as much
        Unused("genai", "gen_ai.request.model", 1),  # of two that say the same one is enough
        Unused("genai", "http.method", 1),
        Unused("openinference", "http.method", 1),
        Unused("openinference", "llm.input_messages.N.message.role", 1),  # what somebody says to a model is a user's
        Unused("openinference", "mine.N.x", 1),
    )


def test_an_attribute_that_made_a_difference_somewhere_is_not_told() -> None:
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-x"}
    spans = [a_span(attributes=chat | {"session.id": "1"}), a_span("b1" * 8, attributes=chat | {"session.id": ""})]
    assert "session.id" not in {one.attribute for one in unused(spans, BUILT_IN.read)}


def test_a_run_without_content_says_what_that_costs_and_how_to_have_it() -> None:
    (note,) = of_file(LIVE / "vercel-ai-sdk-6" / "refund_ok_nocontent.jsonl").runs
    assert [one.what for one in note.missing] == [
        "the messages of 3 of 3 model calls",
        "the arguments of 2 of 2 tool calls",
        "the results of 2 of 2 tool calls",
        "a final answer",
        "the user's request",
        "the instructions",
        "the tools that were offered",
        "a version",
        "an environment",
        "a conversation",
    ]
    (content,) = note.content
    assert content.dialect == "vercel"
    text = printed(of_file(LIVE / "vercel-ai-sdk-6" / "refund_ok_nocontent.jsonl"))
    assert "To switch content on: experimental_telemetry" in text


def test_a_whole_run_lacks_nothing_but_what_its_service_leaves_out() -> None:
    (note,) = of_file(LIVE / "pydantic-ai" / "refund_ok.jsonl").runs
    assert [one.what for one in note.missing] == ["a version", "an environment"]
    assert note.content == ()
    named = {"service.name": "desk", "service.version": "1", "deployment.environment.name": "production"}
    spans, _ = arrived([LIVE / "pydantic-ai" / "refund_ok.jsonl"])
    complete = explanation_of(*(msgspec.structs.replace(span, resource=named) for span in spans))
    assert [one.missing for one in complete.runs] == [()]
    assert "What is missing" not in printed(complete)


def test_tokens_that_a_stream_did_not_report_are_missing() -> None:
    spans = [an_agent(1), an_agent(2, 1, name="chat", attributes={"gen_ai.operation.name": "chat"})]
    (note,) = explanation_of(*spans).runs
    assert "tokens" in [one.what for one in note.missing]


def test_log_records_beside_spans_are_read_with_them() -> None:
    path = LIVE / "openai-v2" / "refund_ok_eventonly.jsonl"
    logs = path.with_name("refund_ok_eventonly.logs.jsonl")
    alone, together = of_file(path), of_file(path, logs)
    assert (alone.log_records, together.log_records) == (0, 3)
    assert [note.run.answer for note in alone.runs] == [None, None, None]
    assert [note.run.answer for note in together.runs] == [None, None, "I refunded 42.50 USD for order A-1001."]
    assert "3 spans and 3 log records in 3 traces: 3 runs" in printed(together)


def test_a_log_record_of_a_span_that_is_not_there_is_counted_and_breaks_nothing() -> None:
    assert explained([an_agent()], [a_log_record("c1" * 8)], BUILT_IN).log_records == 1


def test_text_of_spans_does_nothing_to_a_terminal() -> None:
    hostile = "\x1b[31m\u202e[bold]x"
    raised = Event("exception", attributes={"exception.type": "E", "exception.message": hostile})
    span = an_agent(name=hostile, scope_name="other", attributes={"gen_ai.agent.name": hostile}, events=(raised,), status_code=2)
    text = printed(explanation_of(span, an_agent(2, 1, attributes={}, scope_name=hostile)))
    assert not set(text) & {"\x1b", "\u202e"}
    assert "[bold]x" in text


def test_a_large_trace_is_cut_for_people_and_whole_for_programs() -> None:
    spans = [
        an_agent(1),
        *(an_agent(number, 1, name=f"chat {number}", attributes={"gen_ai.operation.name": "chat"}) for number in range(2, 1002)),
    ]
    explanation = explanation_of(*spans)
    assert "and 801 more; --json has all of them" in printed(explanation)
    assert len(plain(explanation)["spans"]) == 1001


def test_for_programs_a_run_names_its_spans() -> None:
    told = json.loads(msgspec.json.encode(plain(of_file(ONE_OF_EACH["vercel"]))))
    (run,) = told["runs"]
    assert set(run["steps"]) == {span["span_id"] for span in told["spans"]}
    assert {span["kind"] for span in told["spans"]} == {StepKind.AGENT, StepKind.MODEL, StepKind.TOOL}
    assert {"answer", "tool_calls", "usage", "ended", "missing", "content", "flags"} <= run.keys()


def test_the_command_reads_files_and_folders_and_leaves_nothing_behind(tmp_path: Path) -> None:
    said = tracegrade("explain", ONE_OF_EACH["pydantic_ai"].parent, "--json", cwd=tmp_path)
    assert (said.code, said.err) == (0, "")
    assert {span["dialect"] for span in said.json["spans"]} == {"pydantic_ai"}
    assert list(tmp_path.iterdir()) == []


def test_the_command_prints_for_people_or_for_programs(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = ONE_OF_EACH["pydantic_ai"]
    assert explain([path], None, "", as_json=False) == 0
    assert capsysbinary.readouterr().out.startswith(b"6 spans in 1 trace: 1 run\n")
    assert explain([path], None, "", as_json=True) == 0
    (run,) = json.loads(capsysbinary.readouterr().out)["runs"]
    assert run["answer"] == "Order A-1001 holds one lamp at 42.50 USD; A-404 does not exist."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"hello": "world"}', "an object of unknown shape"),
        ('{"resourceLogs": []}', "no spans in there; give files of recorded traces"),
        ('{"resourceSpans": []}', "no spans in there; give files of recorded traces"),
        ("nonsense", "is neither JSON nor one JSON document a line"),
    ],
)
def test_a_file_without_spans_is_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=sentence):
        arrived([path])


@pytest.mark.parametrize(("files", "run_id"), [([], " "), ([Path("a.json")], "ab12")])
def test_files_or_a_run_but_not_both_and_not_neither(files: list[Path], run_id: str) -> None:
    with pytest.raises(ConfigurationError, match="name files of recorded traces, or one stored run with --run ID"):
        explain(files, None, run_id, as_json=False)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"absent\.json does not exist; give files or folders of recorded traces"):
        arrived([tmp_path / "absent.json"])
