"""Messages, evaluations and exceptions in log records are read as if they stood on their spans, in the forms that instrumentations write."""

import json
from typing import Any

import pytest
from builders import a_log_record, a_span

from collectors.dialects import read
from collectors.dialects.log_records import is_kept
from pipeline.model.log_record import LogRecord, beside
from pipeline.model.result import Feedback
from pipeline.model.span import STATUS_ERROR
from pipeline.model.step import Message, Step, StepKind, ToolCall

CALL = {"id": "call-1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": 7}'}}
ASKED = (
    Message("system", "Be kind."),
    Message("user", "Where is it?"),
    Message("assistant", tool_calls=(ToolCall("lookup", "call-1", {"id": 7}),)),
    Message("tool", "at the door", tool_call_id="call-1"),
)
BODIES: list[tuple[str, Any]] = [
    ("gen_ai.system.message", {"content": "Be kind."}),
    ("gen_ai.user.message", {"content": "Where is it?"}),
    ("gen_ai.assistant.message", {"tool_calls": [CALL]}),
    ("gen_ai.tool.message", {"content": "at the door", "id": "call-1"}),
    ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "At the door."}}),
]


def logged(event_name: str, body: Any = None, attributes: dict[str, Any] | None = None, position: int = 0) -> LogRecord:
    return a_log_record(event_name=event_name, body=body, attributes=attributes or {}, position=position)


def step(records: list[LogRecord], attributes: dict[str, Any] | None = None, **fields: Any) -> Step:
    assert all(map(is_kept, records)), "what is read must be kept"
    return read(beside(a_span(attributes={"gen_ai.operation.name": "chat"} | (attributes or {}), **fields), records))


@pytest.mark.parametrize("write", [lambda body: body, json.dumps], ids=["structured", "a JSON text, as Semantic Kernel has it"])
def test_the_old_form_has_a_record_for_every_message(write: Any) -> None:
    found = step([logged(name, write(body), position=position) for position, (name, body) in enumerate(BODIES)])
    assert (found.input, found.output) == (ASKED, (Message("assistant", "At the door."),))
    assert "no_content" not in found.flags


def test_a_text_as_body_is_the_message() -> None:
    found = step([logged("gen_ai.user.message", "Where is it?"), logged("gen_ai.choice", "At the door.")])
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))


def test_a_message_may_stand_as_a_whole_in_one_attribute() -> None:
    content = json.dumps({"message": {"role": "assistant", "content": "At the door."}})
    assert step([logged("gen_ai.choice", None, {"gen_ai.event.content": content})]).output == (
        Message("assistant", "At the door."),
    )


def test_openllmetry_has_the_calls_of_a_choice_beside_its_message() -> None:
    body = {"index": 0, "message": {"role": "assistant", "content": None}, "finish_reason": "tool_calls", "tool_calls": [CALL]}
    assert step([logged("gen_ai.choice", body)]).output == (ASKED[2],)


@pytest.mark.parametrize("name", ["gen_ai.client.inference.operation.details", "a name of its own"])
def test_the_new_form_has_all_messages_in_one_record(name: str) -> None:
    said = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "At the door."}]}],
    }
    found = step([logged(name, None, said)])
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))


def a_body(asked: Any, answered: Any) -> dict[str, Any]:
    return {
        "input": {"messages": [{"role": "user", "content": asked}]},
        "output": {"messages": [{"role": "assistant", "content": answered}]},
    }


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        (StepKind.MODEL, {}),
        (StepKind.MODEL, {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user"}),
        (StepKind.AGENT, {"openinference.span.kind": "AGENT", "agent.name": "helper"}),
        (StepKind.AGENT, {"traceloop.span.kind": "agent", "traceloop.entity.name": "helper"}),
        (StepKind.AGENT, {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}),
    ],
)
def test_content_that_was_taken_off_a_span_of_any_dialect_is_put_back(kind: StepKind, attributes: dict[str, Any]) -> None:
    found = step([logged("the.scope.of.the.span", a_body("Where is it?", "At the door."))], attributes)
    assert found.kind is kind
    assert (found.input, found.output) == ((Message("user", "Where is it?"),), (Message("assistant", "At the door."),))


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"},
        {"openinference.span.kind": "TOOL", "tool.name": "lookup"},
        {"traceloop.span.kind": "tool", "traceloop.entity.name": "lookup"},
    ],
)
def test_arguments_and_result_that_were_taken_off_a_tool_span_are_put_back(attributes: dict[str, Any]) -> None:
    found = step([logged("the.scope.of.the.span", a_body('{"id": 7}', "at the door"))], attributes)
    assert found.tool == ToolCall("lookup", arguments={"id": 7}, result="at the door")


def test_what_a_span_says_itself_stays() -> None:
    own = [{"role": "user", "parts": [{"type": "text", "content": "mine"}]}]
    found = step([logged("scope", a_body("another", "At the door."))], {"gen_ai.input.messages": own})
    assert found.input == (Message("user", "mine"),)


def test_an_exception_that_was_logged_as_an_event_tells_why_a_span_failed() -> None:
    record = logged("exception", None, {"exception.type": "app.TimeoutError", "exception.message": "too slow"})
    assert step([record], status_code=STATUS_ERROR).error == "TimeoutError: too slow"


def an_evaluation(**attributes: Any) -> LogRecord:
    named = {f"gen_ai.evaluation.{key.replace('_', '.')}": value for key, value in attributes.items()}
    return a_log_record(event_name="gen_ai.evaluation.result", attributes={"gen_ai.evaluation.name": "tone"} | named)


def feedback(record: LogRecord) -> list[tuple[float, str, str]]:
    found: tuple[Feedback, ...] = step([record]).feedback
    return [(one.value, one.author, one.comment) for one in found]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ({"score_label": "fail", "score_value": 0.0}, -1.0),
        ({"score_label": "Incorrect"}, -1.0),
        ({"score_label": "pass", "score_value": 1.0}, 1.0),
        ({"score_value": 0.0}, 0.0),
        ({"score_value": 4, "score_label": "a word that nobody knows"}, 4.0),
        ({"score_value": -1.0}, -1.0),
    ],
)
def test_an_evaluation_by_others_is_feedback_on_its_step_and_no_judgment(said: dict[str, Any], value: float) -> None:
    comment = str(said.get("score_label", ""))
    assert feedback(an_evaluation(**said)) == [(value, "evaluation tone", comment)]
    found = step([an_evaluation(**said)])
    assert found.kind is StepKind.MODEL, "the span that was evaluated is no grader"


@pytest.mark.parametrize("said", [{}, {"explanation": "hm"}, {"score_label": "hm"}, {"score_value": True}, {"score_value": "1"}])
def test_an_evaluation_without_a_score_says_nothing(said: dict[str, Any]) -> None:
    assert feedback(an_evaluation(**said)) == []


def test_an_evaluation_that_failed_says_nothing_of_the_run() -> None:
    record = a_log_record(
        event_name="gen_ai.evaluation.result", attributes={"error.type": "Timeout", "gen_ai.evaluation.score.value": -1.0}
    )
    assert feedback(record) == []


def test_the_same_evaluation_said_twice_is_one() -> None:
    once, twice = an_evaluation(score_label="fail"), an_evaluation(score_label="fail", other=1)
    assert len(step([once, twice]).feedback) == 1
    assert len(step([once, an_evaluation(score_label="pass")]).feedback) == 2


@pytest.mark.parametrize(
    "record",
    [
        a_log_record(event_name="", body="GET /cart 200"),
        a_log_record(event_name="", body={"input": "x", "output": {"messages": "none"}}),
        a_log_record(event_name="http.request", attributes={"http.method": "GET"}),
        a_log_record(event_name="", attributes={"exception.type": "E", "exception.stacktrace": "…"}),
        a_log_record(event_name="", attributes={"gen_ai.agent.name": "helper"}),
        a_log_record(event_name="gen_ai.evaluation.result", scope_name="tracegrade"),
    ],
)
def test_what_no_dialect_reads_is_not_kept(record: LogRecord) -> None:
    assert not is_kept(record)
