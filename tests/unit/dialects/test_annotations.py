"""What is said of a span, on it or on a carrier that links to it (dialects reference, sections 3 and 13)."""

from typing import Any

import pytest
from builders import T0, a_log_record, a_span

from collectors.dialects import read
from collectors.dialects.annotations import carried
from pipeline.model.span import Event, Link, Span
from pipeline.model.step import StepKind
from pipeline.model.time import HOUR

TARGET = Link("cd" * 16, "00000000000000c1")
DISLIKED = {"annotations.0.annotation.name": "tone", "annotations.0.annotation.label": "thumbs_down"}


def a_carrier(*links: Link, **fields: Any) -> Span:
    return a_span("00000000000000f1", links=links or (TARGET,), received_ns=T0 + 5 * HOUR, **fields)


def test_a_carriers_word_is_about_the_span_it_links_to_and_not_about_its_own_trace() -> None:
    said = {
        **DISLIKED,
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "annotations.0.annotation.identifier": "ann",
        "annotations.0.annotation.explanation": "rude",
        "annotations.1.annotation.name": "speed",
        "annotations.1.annotation.score": 0.75,
        "evaluations.0.evaluation.name": "faithful",
        "evaluations.0.evaluation.label": "correct",
    }
    carrier = a_carrier(attributes=said)
    tone, speed, faithful = carried([carrier])
    assert {(one.project, one.trace_id, one.span_id, one.run_id) for one in (tone, speed, faithful)} == {
        ("default", TARGET.trace_id, TARGET.span_id, "")
    }
    assert (tone.value, tone.author, tone.comment) == (-1.0, "evaluation tone by ann", "thumbs_down: rude")
    assert (speed.value, faithful.value) == (0.75, 1.0)
    assert tone.received_ns == T0 + 5 * HOUR
    step = read(carrier)
    assert (step.kind, step.feedback) == (StepKind.IGNORED, ()), "the carrier is no part of any run"


def test_said_of_the_trace_it_is_about_all_its_runs() -> None:
    (found,) = carried([a_carrier(attributes={f"trace.{name}": value for name, value in DISLIKED.items()})])
    assert (found.trace_id, found.span_id, found.value) == (TARGET.trace_id, "", -1.0)


@pytest.mark.parametrize(
    "fields",
    [
        {"attributes": {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "fail"}},
        {
            "attributes": {"openinference.span.kind": "EVALUATOR"},
            "events": (
                Event(
                    "gen_ai.evaluation.result", T0, {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.label": "fail"}
                ),
            ),
        },
    ],
    ids=["as attributes", "as an event of a grader"],
)
def test_a_graders_span_that_links_to_what_it_graded_is_a_carrier(fields: dict[str, Any]) -> None:
    (found,) = carried([a_carrier(**fields)])
    assert (found.trace_id, found.span_id, found.value, found.author) == (
        TARGET.trace_id,
        TARGET.span_id,
        -1.0,
        "evaluation tone",
    )


def test_however_often_and_by_whichever_carrier_it_is_said_it_is_the_same_feedback() -> None:
    one = a_carrier(attributes=DISLIKED)
    other = a_span("00000000000000f2", trace_id="ee" * 16, links=(TARGET,), attributes=DISLIKED)
    ids = {found.id for found in carried([one, one, other])}
    assert len(ids) == 1
    elsewhere = a_carrier(attributes=DISLIKED, project="another")
    assert carried([elsewhere])[0].id not in ids


@pytest.mark.parametrize(
    "span",
    [
        a_span(attributes=DISLIKED),
        a_carrier(TARGET, Link("ef" * 16, "00000000000000e1"), attributes=DISLIKED),
        a_carrier(attributes={"gen_ai.operation.name": "invoke_agent"}),
        a_carrier(
            attributes={"gen_ai.operation.name": "invoke_agent"},
            events=(Event("gen_ai.evaluation.result", T0, {"gen_ai.evaluation.score.label": "fail"}),),
        ),
        a_carrier(attributes={"annotations.0.annotation.name": "tone"}),
        a_carrier(attributes={f"session.{name}": value for name, value in DISLIKED.items()}),
    ],
    ids=["no link", "two links", "a span that continues another", "a span that was evaluated itself", "no score", "of a session"],
)
def test_what_is_no_carrier_says_nothing_of_other_traces(span: Span) -> None:
    assert carried([span, a_log_record()]) == []


def test_annotations_on_the_span_itself_are_feedback_on_its_step_which_stays_a_part_of_the_run() -> None:
    step = read(a_span(attributes={**DISLIKED, "openinference.span.kind": "AGENT", "agent.name": "desk"}))
    assert (step.kind, step.agent, [one.value for one in step.feedback]) == (StepKind.AGENT, "desk", [-1.0])
