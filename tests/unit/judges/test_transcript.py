"""A run as a judge is shown it."""

import msgspec
import pytest
from builders import T0, a_step
from hypothesis import given, settings
from hypothesis import strategies as st
from judge_builders import ORDER, refunded
from run_builders import a_call, a_failure

from pipeline.judges.transcript import Observation, Turn, document, read, render
from pipeline.model.run import Cohort, Place, Run
from pipeline.model.step import Message, StepKind, ToolCall
from pipeline.model.time import DAY, MINUTE

PLENTY = 1_000_000


def said(text: str, **fields: object) -> Message:
    return Message("assistant", text, **fields)  # type: ignore[arg-type]


def test_observations_stand_apart_from_claims() -> None:
    first, last = (
        a_step("01", kind=StepKind.MODEL, output=(said("I will look it up."),)),
        a_step("02", kind=StepKind.MODEL, output=(said("Done."),)),
    )
    sections = read(render(refunded(answer="Done.", steps=(first, last)), PLENTY).body)
    assert sections.observations[0] == Observation("lookup_order", '{"order_id": "A-1001"}', ORDER)
    assert sections.claims == ("I will look it up.",)
    assert sections.answer == "Done."
    assert not sections.cut


def test_what_came_before_the_request_is_told_by_who_said_it() -> None:
    lookup = ToolCall("lookup_order", id="c1", arguments={"order_id": "A-1002"})
    run = refunded(
        request="And refund it.",
        messages=(
            Message("system", "Be kind."),
            Message("user", "Where is A-1002?"),
            said("", tool_calls=(lookup,)),
            Message("tool", "on its way", tool_call_id="c1"),
            said("It is on its way."),
            Message("user", "And refund it."),
        ),
        system="",
    )
    sections = document(run)
    assert sections.system == "Be kind."
    assert sections.earlier == (Turn("user", "Where is A-1002?"), Turn("assistant", "It is on its way."))
    assert sections.observations[0] == Observation("lookup_order", '{"order_id": "A-1002"}', "on its way")


def test_arguments_that_did_not_parse_are_shown_as_they_were() -> None:
    call = ToolCall("refund", raw_arguments='{"amount": ', error="not executed")
    assert document(refunded(calls=(call,))).observations == (Observation("refund", '{"amount": ', None, "not executed"),)


def elsewhere(run: Run) -> Run:
    """The same content, at another time, in another trace and cohort."""
    moved = [
        msgspec.structs.replace(step, span_id=f"ff{number}", start_ns=step.start_ns + DAY, received_ns=1)
        for number, step in enumerate(run.steps)
    ]
    return msgspec.structs.replace(
        run,
        project="other",
        trace_id="ef" * 16,
        run_id="01" * 16,
        head_span_id="00000000000000ff",
        place=Place(Cohort("other", "2", "staging"), T0 + 5 * MINUTE),
        start_ns=run.start_ns + DAY,
        end_ns=run.end_ns + DAY,
        first_received_ns=run.first_received_ns + DAY,
        steps=tuple(moved),
        conversation_id="conv-9",
        tool_calls=tuple(msgspec.structs.replace(call, id=f"call-{number}") for number, call in enumerate(run.tool_calls)),
    )


texts = st.text(max_size=30)
calls = st.builds(
    ToolCall,
    name=texts,
    arguments=st.one_of(st.none(), st.dictionaries(texts, st.one_of(texts, st.integers(), st.floats()), max_size=3)),
    result=st.one_of(st.none(), st.text(max_size=3000)),
    error=st.one_of(st.none(), texts),
)
runs = st.builds(
    lambda some, answer, request, spoken: refunded(
        calls=tuple(some),
        answer=answer,
        request=request,
        steps=tuple(a_step(f"{n}", kind=StepKind.MODEL, output=(said(text),)) for n, text in enumerate(spoken)),
    ),
    st.lists(calls, max_size=12),
    texts,
    texts,
    st.lists(texts, max_size=4),
)


@given(runs)
def test_the_same_content_has_the_same_hash_wherever_and_whenever_it_happened(run: Run) -> None:
    assert render(run, 3000) == render(elsewhere(run), 3000)


@given(runs)
def test_a_body_names_no_ids_and_no_times(run: Run) -> None:
    body = render(run, PLENTY).body
    assert all(name not in body for name in (run.trace_id, run.run_id, run.head_span_id, str(T0), str(run.first_received_ns)))


@given(runs, st.integers(200, 20_000))
@settings(deadline=None)
def test_a_transcript_fits_its_budget_or_says_that_it_does_not(run: Run, budget: int) -> None:
    transcript = render(run, budget)
    assert transcript.too_long == (len(transcript.body) > budget)


@given(runs, st.integers(200, 20_000))
@settings(deadline=None)
def test_request_and_answer_are_never_cut(run: Run, budget: int) -> None:
    sections = read(render(run, budget).body)
    assert (sections.request, sections.answer) == (run.request, run.answer)


@pytest.mark.parametrize("change", [{"answer": "No."}, {"request": "Hello"}, {"system": "Be rude."}, {"calls": ()}])
def test_other_content_has_another_hash(change: dict[str, object]) -> None:
    assert render(refunded(**change), PLENTY).hash != render(refunded(), PLENTY).hash


def test_a_cut_keeps_errors_and_the_last_calls_and_marks_what_is_gone() -> None:
    middling = [a_call("search", {"page": page}, "x" * 2000) for page in range(40)]
    middling[30] = a_failure("search", {"page": 30}, "no such page")
    transcript = render(refunded(calls=tuple(middling)), 12_000)
    sections = read(transcript.body)
    arguments = [call.arguments for call in sections.observations]
    assert not transcript.too_long
    assert sections.cut
    assert "no such page" in [call.error for call in sections.observations]
    assert arguments[-3:] == ['{"page": 37}', '{"page": 38}', '{"page": 39}']
    assert sum(call.left_out or 1 for call in sections.observations) == 40


def test_a_long_text_keeps_its_head_and_its_tail_and_says_how_much_is_gone() -> None:
    result = "HEAD" + "x" * 30_000 + "TAIL"
    (call,) = read(render(refunded(calls=(a_call("read", {}, result),)), 20_000).body).observations
    assert call.result is not None
    assert call.result.startswith("HEAD")
    assert call.result.endswith("TAIL")
    assert f"[… {30_008 - 8000} characters left out …]" in call.result


def test_an_answer_longer_than_the_budget_is_too_long() -> None:
    assert render(refunded(answer="x" * 5000), 4000).too_long


def test_half_a_character_does_not_stop_a_transcript() -> None:
    assert "?" in render(refunded(answer="\ud83d", calls=(a_call("x", {"a": "\ud83d"}, "\ud83d"),)), PLENTY).body
