"""Logfire: feedback as a span below what it is about, and calls of models by its own instrumentations (dialects reference, section 7)."""

import json
from typing import Any

import msgspec
import pytest
from builders import T0, a_span
from recordings import runs_of

from collectors.dialects import read
from pipeline.model.span import Event, Span
from pipeline.model.step import Message, StepKind, Usage
from pipeline.model.time import SECOND
from pipeline.stages.assemble import TraceState

HOURS = 3 * 3600 * SECOND
REQUEST = {
    "model": "gpt-x",
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Where is A-1?"}],
}
RESPONSE = {"message": {"role": "assistant", "content": "At home."}, "usage": {"prompt_tokens": 12, "completion_tokens": 3}}


def an_annotation(**attributes: Any) -> Span:
    known = {"logfire.span_type": "annotation", **{name.replace("__", "."): value for name, value in attributes.items()}}
    fields = {"start_ns": T0 + HOURS, "end_ns": T0 + HOURS, "received_ns": T0 + HOURS}
    return a_span(
        "00000000000000b2", "00000000000000a1", name="feedback: x", scope_name="logfire.feedback", attributes=known, **fields
    )


@pytest.mark.parametrize(
    ("said", "value", "comment"),
    [
        ({"logfire__feedback__name": "factuality", "factuality": 0.1, "logfire__feedback__comment": "it lied"}, 0.1, "it lied"),
        ({"logfire__feedback__name": "thumbs", "thumbs": "bad"}, -1.0, "bad"),
        ({"logfire__feedback__name": "correct", "correct": False}, -1.0, "false"),
        ({"logfire__feedback__name": "correct", "correct": True}, 1.0, "true"),
        ({"feedback__name": "relevance", "feedback__score": -2}, -2.0, ""),
        ({"feedback__name": "relevance", "feedback__label": "good", "feedback__comment": "on point"}, 1.0, "good: on point"),
        ({"feedback__name": "relevance", "feedback__assertion": False}, -1.0, "false"),
    ],
)
def test_feedback_has_a_value_under_its_name_or_under_a_fixed_one(said: dict[str, Any], value: float, comment: str) -> None:
    step = read(an_annotation(**said))
    (feedback,) = step.feedback
    name = said.get("logfire__feedback__name", said.get("feedback__name"))
    assert (feedback.value, feedback.comment, feedback.author) == (value, comment, f"evaluation {name}")
    assert feedback.trace_id == "ab" * 16


def test_feedback_and_an_evaluation_on_one_span_both_count() -> None:
    found = {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "pass"}
    span = an_annotation(logfire__feedback__name="thumbs", thumbs="bad")
    both = read(msgspec.structs.replace(span, events=(Event("gen_ai.evaluation.result", attributes=found),)))
    assert [one.value for one in both.feedback] == [-1.0, 1.0]


@pytest.mark.parametrize("said", [{}, {"logfire__feedback__name": "x"}, {"logfire__feedback__name": "x", "x": "no known word"}])
def test_an_annotation_that_says_nothing_is_no_feedback(said: dict[str, Any]) -> None:
    assert read(an_annotation(**said)).feedback == ()


def test_feedback_reaches_the_run_that_it_is_about_hours_later() -> None:
    agent = a_span(scope_name="pydantic-ai", name="agent run", attributes={"agent_name": "support", "final_result": "At home."})
    state = TraceState("default", "ab" * 16)
    state.add_spans([agent, an_annotation(logfire__feedback__name="thumbs", thumbs="bad")])
    (group,) = state.groups(read)
    assert [found.value for step in group.steps for found in step.feedback] == [-1.0]
    (run,) = runs_of([agent, an_annotation(logfire__feedback__name="thumbs", thumbs="bad")])
    assert (run.answer, run.end_ns) == ("At home.", agent.end_ns)


def test_a_call_of_a_model_has_its_request_and_its_response() -> None:
    attributes = {
        "request_data": json.dumps(REQUEST | {"tools": [{"type": "function", "function": {"name": "lookup"}}]}),
        "response_data": json.dumps(RESPONSE),
        "gen_ai.system": "openai",
    }
    step = read(a_span(scope_name="logfire.openai", name="Chat Completion with 'gpt-x'", attributes=attributes))
    assert (step.kind, step.model, step.provider, step.usage) == (StepKind.MODEL, "gpt-x", "openai", Usage(12, 3))
    assert step.input == (Message("system", "Be kind."), Message("user", "Where is A-1?"))
    assert step.output == (Message("assistant", "At home."),)
    assert [tool.name for tool in step.tools] == ["lookup"]
    assert step.flags == ()


def test_anthropics_rules_stand_beside_the_messages() -> None:
    request = {"system": "Be kind.", "messages": [{"role": "user", "content": "Where?"}], "model": "claude-x"}
    step = read(a_span(scope_name="logfire.anthropic", attributes={"request_data": json.dumps(request)}))
    assert step.input == (Message("system", "Be kind."), Message("user", "Where?"))
    assert (step.model, step.provider) == ("claude-x", "anthropic")


def test_what_a_stream_came_to_is_a_log_beside_the_call_and_no_second_call() -> None:
    request = {"request_data": json.dumps(REQUEST | {"stream": True})}
    streamed = request | {
        "logfire.span_type": "log",
        "response_data": json.dumps({"combined_chunk_content": "At home.", "chunk_count": 3}),
    }
    call = a_span(scope_name="logfire.openai", attributes=request)
    log = a_span("00000000000000b2", "00000000000000a1", scope_name="logfire.openai", attributes=streamed)
    assert (read(log).kind, read(log).output) == (StepKind.OTHER, (Message("assistant", "At home."),))
    (run,) = runs_of([call, log])
    assert run.model_calls == 1


def test_a_copy_of_a_span_that_is_still_open_is_no_part_of_its_run() -> None:
    open_copy = a_span(
        "00000000000000b2",
        "00000000000000a1",
        scope_name="pydantic-ai",
        attributes={"logfire.span_type": "pending_span", "agent_name": "x"},
    )
    agent = a_span(scope_name="pydantic-ai", name="agent run", attributes={"agent_name": "support", "final_result": "At home."})
    assert read(open_copy).kind is StepKind.IGNORED
    (run,) = runs_of([agent, open_copy])
    assert (run.place.cohort.agent, len(run.steps)) == ("support", 1)
