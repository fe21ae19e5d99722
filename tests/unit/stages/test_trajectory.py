"""What happened in a run, from its steps."""

from typing import Any

import msgspec
import pytest
from builders import T0, a_step
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.model.run import Cohort, Ended, Place, Run
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition, Usage
from pipeline.model.time import SECOND
from pipeline.scorers.calls import NOT_EXECUTED
from pipeline.stages.trajectory import as_run

AGENT, MODEL, TOOL, CHAIN, OTHER, ORCHESTRATION = (
    StepKind.AGENT,
    StepKind.MODEL,
    StepKind.TOOL,
    StepKind.CHAIN,
    StepKind.OTHER,
    StepKind.ORCHESTRATION,
)


def run_of(*steps: Step, agent: str = "desk", head: Step | None = None) -> Run:
    return as_run(
        project="default",
        trace_id="ab" * 16,
        run_id="cd" * 16,
        head=head or steps[0],
        steps=steps,
        place=Place(Cohort(agent=agent), 0),
        start_ns=T0,
        end_ns=T0 + SECOND,
        first_received_ns=T0 + SECOND,
    )


def desk(**fields: Any) -> Step:
    return a_step("agent", kind=AGENT, agent="desk", end_ns=T0 + 90 * SECOND, **fields)


def model(at: int, *said: str | ToolCall, parent: str = "agent", told: tuple[Message, ...] = (), **fields: Any) -> Step:
    texts = "".join(one for one in said if isinstance(one, str))
    calls = tuple(one for one in said if isinstance(one, ToolCall))
    output = (Message("assistant", texts, calls),) if said else ()
    return a_step(f"m{at}{parent}", parent, MODEL, start_ns=T0 + at * SECOND, output=output, input=told, **fields)


def tool(at: int, call: ToolCall, parent: str = "agent", **fields: Any) -> Step:
    return a_step(f"t{at}{parent}", parent, TOOL, start_ns=T0 + at * SECOND, tool=call, error=call.error, **fields)


def user(text: str) -> Message:
    return Message("user", text)


def told(text: str, call_id: str) -> Message:
    return Message("tool", text, tool_call_id=call_id)


REFUND = ToolCall("refund", "c1", {"order": 7})


# Tool calls


def test_a_call_is_what_the_model_asked_what_ran_and_what_the_model_was_told() -> None:
    run = run_of(
        desk(), model(1, REFUND), tool(3, ToolCall("refund", result="paid")), model(5, "Done.", told=(told("paid ", "c1"),))
    )
    assert run.tool_calls == (ToolCall("refund", "c1", {"order": 7}, result="paid "),)


def test_what_the_span_says_was_passed_goes_before_what_was_asked_for() -> None:
    passed = ToolCall("refund", "c1", {"order": 7, "currency": "EUR"}, result="paid")
    assert run_of(desk(), model(1, REFUND), tool(3, passed)).tool_calls == (passed,)


def test_without_ids_calls_of_one_tool_are_told_apart_by_their_arguments_even_if_only_a_bare_value_is_known() -> None:
    first, second = ToolCall("look", "c1", {"order": "A"}), ToolCall("look", "c2", {"order": "B"})
    run = run_of(
        desk(),
        model(1, first, second),
        tool(3, ToolCall("look", raw_arguments="B", result="b")),
        tool(4, ToolCall("look", arguments={"order": "A"}, result="a")),
    )
    assert [(call.id, call.arguments, call.result) for call in run.tool_calls] == [
        ("c2", {"order": "B"}, "b"),
        ("c1", {"order": "A"}, "a"),
    ]


def test_without_ids_and_arguments_calls_are_joined_in_order() -> None:
    asked = [ToolCall("look", f"c{number}", {"n": number}) for number in range(3)]
    run = run_of(desk(), model(1, *asked), *(tool(3 + number, ToolCall("look")) for number in range(3)))
    assert [(call.id, call.arguments) for call in run.tool_calls] == [("c0", {"n": 0}), ("c1", {"n": 1}), ("c2", {"n": 2})]


def test_a_span_of_another_id_does_not_take_a_request() -> None:
    run = run_of(desk(), model(1, REFUND), tool(3, ToolCall("refund", "other", {"order": 7})))
    assert [(call.id, call.error) for call in run.tool_calls] == [("c1", NOT_EXECUTED), ("other", None)]


def test_a_model_that_gives_all_calls_one_id_is_told_each_result_in_turn() -> None:
    calls = [ToolCall("look", "same", {"n": number}) for number in range(2)]
    history = (told("earlier", "same"), told("zero", "same"), told("one", "same"))
    run = run_of(
        desk(),
        model(1, calls[0]),
        tool(2, ToolCall("look", "same")),
        model(3, calls[1]),
        tool(4, ToolCall("look", "same")),
        model(5, "Done.", told=history),
    )
    assert [(call.arguments, call.result) for call in run.tool_calls] == [({"n": 0}, "zero"), ({"n": 1}, "one")]


def test_one_id_for_all_calls_is_told_in_turn_also_where_no_input_repeats_the_history() -> None:
    first, second = ToolCall("find", "c", arguments={"n": 1}), ToolCall("pay", "c", arguments={"n": 2})
    run = run_of(
        desk(),
        model(1, first),
        tool(2, msgspec.structs.replace(first, result="a lamp")),
        model(3, second, told=(told("a lamp", "c"),)),
        tool(4, msgspec.structs.replace(second, result="refused", error="refused")),
        model(5, "It was refused.", told=(told("refused", "c"),)),
    )
    assert [(call.name, call.result, call.error) for call in run.tool_calls] == [
        ("find", "a lamp", None),
        ("pay", "refused", "refused"),
    ]


def test_a_call_that_no_span_executed_is_not_executed_whatever_the_model_was_told() -> None:
    run = run_of(desk(), model(1, REFUND), model(5, "No.", told=(told("Error: no such tool", "c1"),)))
    assert run.tool_calls == (ToolCall("refund", "c1", {"order": 7}, result="Error: no such tool", error=NOT_EXECUTED),)


def test_in_a_bare_loop_of_one_trace_the_next_model_call_tells_what_ran() -> None:
    failing = ToolCall("look", "c2", {"order": 8})
    run = run_of(
        a_step("request", kind=OTHER),
        model(1, REFUND, parent="request"),
        model(2, failing, parent="request", told=(told("paid", "c1"),)),
        model(3, ToolCall("look", "c3"), parent="request", told=(told("paid", "c1"), told("error: no order 8", "c2"))),
    )
    assert [(call.result, call.error) for call in run.tool_calls] == [
        ("paid", None),
        ("error: no order 8", "error: no order 8"),
        (None, NOT_EXECUTED),
    ]


def test_a_call_that_the_provider_ran_needs_no_span() -> None:
    searched = ToolCall("web_search", "s1", {"q": "x"}, result="found")
    run = run_of(desk(), model(1, "Found.", searched))
    assert run.tool_calls == (searched,)
    assert run.answer == "Found."


def test_a_streamed_reply_that_repeats_its_call_asks_once() -> None:
    output = (Message("assistant", "", (ToolCall("refund", "c1"),)), Message("assistant", "", (REFUND,)))
    step = a_step("m1", "agent", MODEL, output=output)
    assert run_of(desk(), step, tool(3, ToolCall("refund", "c1"))).tool_calls == (REFUND,)


def test_empty_arguments_on_a_span_are_none_unless_the_tool_takes_none() -> None:
    offered = (ToolDefinition("now", {"type": "object", "properties": {}}), ToolDefinition("look", {"properties": {"n": {}}}))
    run = run_of(desk(tools=offered), tool(1, ToolCall("now", raw_arguments="{}")), tool(2, ToolCall("look", raw_arguments="{}")))
    assert [(call.arguments, call.raw_arguments) for call in run.tool_calls] == [({}, ""), (None, "{}")]


def test_one_call_seen_by_two_instrumentations_is_one_call() -> None:
    outer = tool(2, ToolCall("refund", "c1", {"order": 7}, result="paid"))
    inner = tool(3, ToolCall("refund"), parent=outer.span_id)
    assert run_of(desk(), outer, inner).tool_calls == (ToolCall("refund", "c1", {"order": 7}, result="paid"),)


def test_agents_that_a_framework_nests_under_their_own_name_do_not_double_what_they_did() -> None:
    inner = a_step("inner", "agent", AGENT, agent="desk")
    run = run_of(desk(), inner, model(1, REFUND, parent="inner"), tool(3, ToolCall("refund", "c1"), parent="inner"))
    assert run.tool_calls == (REFUND,)
    assert (run.agents, run.model_calls) == ((), 1)


def test_a_hand_over_answers_its_request_whatever_that_is_called() -> None:
    handoff = a_step("h", "agent", OTHER, start_ns=T0 + 3 * SECOND, tool=ToolCall("transfer_to_b"), flags=("handoff",))
    for name in ("transfer_to_b", "escalate"):
        run = run_of(desk(), model(1, ToolCall(name, "c1", {})), handoff)
        assert run.tool_calls == ()
        assert run.flags == ("handoff",)


def test_an_agent_that_was_called_like_a_tool_without_a_tool_span_is_the_call() -> None:
    asked = ToolCall("helper", "c1", {"task": "x"})
    helper = a_step("helper", "agent", AGENT, agent="helper", start_ns=T0 + 3 * SECOND, output=(Message("assistant", "did x"),))
    run = run_of(desk(), model(1, asked), helper, model(4, "inside", parent="helper"), model(6, "Done."))
    assert run.tool_calls == (ToolCall("helper", "c1", {"task": "x"}, result="did x"),)
    assert run.agents == ("helper",)
    assert run.answer == "Done."


def test_calls_stand_in_the_order_in_which_they_were_executed_or_else_asked_for() -> None:
    late, never = ToolCall("late", "c1", {}), ToolCall("never", "c2", {})
    run = run_of(desk(), model(1, late, never), tool(8, ToolCall("late", "c1")), tool(5, ToolCall("early")))
    assert [call.name for call in run.tool_calls] == ["never", "early", "late"]


def test_calls_that_begin_at_the_same_time_stand_in_the_order_in_which_they_were_asked_for() -> None:
    first, second = ToolCall("first", "c1", {}), ToolCall("second", "c2", {})
    both = (tool(5, ToolCall("second", "c2"), name="a"), msgspec.structs.replace(tool(5, ToolCall("first", "c1")), span_id="z"))
    assert [call.name for call in run_of(desk(), model(1, first, second), *both).tool_calls] == ["first", "second"]
    alone = run_of(desk(), *both).tool_calls
    assert [call.name for call in alone] == ["second", "first"]


# The answer


def test_the_answer_is_the_last_text_and_not_one_that_tool_calls_follow() -> None:
    run = run_of(desk(), model(1, "Let me see.", REFUND), tool(3, REFUND), model(5, "Done."))
    assert run.answer == "Done."
    assert run_of(desk(), model(1, "Let me see.", REFUND), tool(3, REFUND)).answer is None


def test_what_the_agent_gave_goes_before_what_a_model_said_last() -> None:
    head = desk(output=(Message("assistant", "Your refund is on its way."),))
    assert run_of(head, model(1, "Your refund is on its way."), model(9, "title: Refund")).answer == "Your refund is on its way."


def test_a_structure_that_the_agent_gave_is_an_answer_only_where_no_model_spoke() -> None:
    head = desk(output=(Message("assistant", '{"score":1}'),), flags=("opaque",))
    assert run_of(head, model(1, "Good.")).answer == "Good."
    assert run_of(head, model(1)).answer == '{"score":1}'


def test_an_agent_that_says_that_it_has_no_answer_has_none() -> None:
    run = run_of(desk(output=(Message("assistant"),)), model(1, "Thought: I should look."))
    assert (run.answer, run.completed) == (None, False)


def test_the_answer_of_a_sub_agent_is_not_the_runs() -> None:
    inside = [
        tool(3, ToolCall("ask_b", "c1", result="42")),
        a_step("b", "t3agent", AGENT, agent="b"),
        model(4, "42", parent="b"),
    ]
    asked = model(1, ToolCall("ask_b", "c1"))
    assert run_of(desk(), asked, *inside).answer is None
    assert run_of(desk(), asked, *inside, model(6, "It is 42.")).answer == "It is 42."


def test_after_a_hand_over_the_last_agent_answers() -> None:
    flow = a_step("flow", kind=ORCHESTRATION, end_ns=T0 + 90 * SECOND)
    first = a_step("a", "flow", AGENT, agent="desk", end_ns=T0 + 3 * SECOND)
    second = a_step("b", "flow", AGENT, agent="refunds", start_ns=T0 + 3 * SECOND, end_ns=T0 + 9 * SECOND)
    said = model(1, "I hand you over.", ToolCall("transfer_to_refunds", "c1"), parent="a")
    run = run_of(flow, first, said, second, model(4, "Paid.", parent="b"))
    assert (run.answer, run.agents) == ("Paid.", ("refunds",))


def test_what_a_guardrail_says_is_not_an_answer() -> None:
    guard = a_step("g", "agent", OTHER, start_ns=T0 + 8 * SECOND, flags=("guardrail",))
    assert run_of(desk(), model(1, "Done."), guard, model(8, "harmless", parent="g")).answer == "Done."


def test_a_final_answer_step_carries_the_answer() -> None:
    final = a_step(
        "f",
        "agent",
        OTHER,
        start_ns=T0 + 5 * SECOND,
        tool=ToolCall("final_answer"),
        output=(Message("assistant", "42"),),
    )
    run = run_of(desk(), model(1, ToolCall("final_answer", "c1", {"answer": "42"})), final)
    assert (run.answer, run.tool_calls) == ("42", ())


# The end


def test_a_run_ends_with_its_answer_its_heads_failure_or_in_silence() -> None:
    assert (run_of(desk(), model(1, "Done.")).ended, run_of(desk(), model(1, "Done.")).error) == (Ended.ANSWER, None)
    failed = run_of(desk(error="boom"), model(1, "Half an answer."))
    assert (failed.ended, failed.error, failed.answer) == (Ended.ERROR, "boom", "Half an answer.")
    assert run_of(desk(), model(1, REFUND)).ended is Ended.SILENCE


def test_a_step_that_raised_ends_a_run_without_an_answer_though_its_head_is_fine() -> None:
    turn = a_step("turn", "agent", CHAIN, error="Tool not found")
    run = run_of(desk(), turn, model(1, REFUND, parent="turn"))
    assert (run.ended, run.error) == (Ended.ERROR, "Tool not found")
    assert run_of(desk(), turn, model(1, "Done.", parent="turn")).ended is Ended.ANSWER


def test_a_failed_tool_ends_a_run_only_if_nothing_came_after_it() -> None:
    failed = tool(3, ToolCall("refund", "c1", error="KeyError: 7"))
    assert run_of(desk(), model(1, REFUND), failed).error == "KeyError: 7"
    assert run_of(desk(), model(1, REFUND), failed, model(5, ToolCall("look", "c2"))).ended is Ended.SILENCE


def test_a_sub_agents_failure_is_not_the_runs() -> None:
    inside = a_step("b", "t3agent", AGENT, agent="b", error="b broke")
    run = run_of(desk(), model(1, ToolCall("ask_b", "c1")), tool(3, ToolCall("ask_b", "c1")), inside, model(5, REFUND))
    assert (run.ended, run.error) == (Ended.SILENCE, None)


# What was asked


def test_the_request_is_this_turns_though_history_is_replayed() -> None:
    history = (user("Refund me."), Message("assistant", "Done."), user("Really?"))
    run = run_of(desk(), model(1, "Yes.", told=(Message("system", "Be kind."), *history)))
    assert run.request == "Really?"
    assert run.system == "Be kind."
    assert run.messages == history


def test_what_the_agent_was_given_is_nearer_to_the_user_than_what_its_model_was() -> None:
    run = run_of(desk(input=(user("Refund me."),)), model(1, "Done.", told=(user("New task:\nRefund me."),)))
    assert run.request == "Refund me."


def test_what_a_sub_agent_was_asked_is_not_the_request() -> None:
    inside = a_step("b", "t1agent", AGENT, agent="b", input=(user("sub-task"),))
    run = run_of(desk(), tool(1, ToolCall("ask_b")), inside, model(3, "Done.", told=(user("Refund me."),)))
    assert run.request == "Refund me."


def test_the_conversation_is_the_heads_else_its_own_steps_and_never_a_sub_agents() -> None:
    inside = a_step("b", "t1agent", AGENT, agent="b", conversation_id="other")
    steps = (tool(1, ToolCall("ask_b")), inside, model(3, "Done.", conversation_id="thread-1"))
    assert run_of(desk(), *steps).conversation_id == "thread-1"
    assert run_of(desk(conversation_id="root"), *steps).conversation_id == "root"


def test_tools_offered_are_listed_once_with_the_schema_that_any_offer_has() -> None:
    schema = {"type": "object"}
    run = run_of(
        desk(tools=(ToolDefinition("a"),)),
        model(1, "x", tools=(ToolDefinition("b"), ToolDefinition("a"))),
        model(2, "y", tools=(ToolDefinition("a", schema),)),
        tool(3, ToolCall("c")),
    )
    assert run.tools == (ToolDefinition("b"), ToolDefinition("a", schema))


# What was spent


def test_tokens_are_summed_over_model_calls_and_totals_of_agents_left_alone() -> None:
    run = run_of(
        desk(usage=Usage(999, 999)), model(1, "x", usage=Usage(100, 10, 20)), model(2, "y", usage=Usage(200, None, None, 5))
    )
    assert run.usage == Usage(300, 10, 20, 5)
    assert run_of(desk(), model(1, "x")).usage == Usage()


def test_an_agents_total_counts_where_no_model_call_below_it_tells() -> None:
    helper = a_step("helper", "agent", AGENT, agent="helper", usage=Usage(7, 7))
    own = model(1, "x", usage=Usage(100, 10))
    assert run_of(desk(usage=Usage(999, 999)), own, helper).usage == Usage(107, 17)
    assert run_of(desk(usage=Usage(999, 999)), model(1, "x"), helper).usage == Usage(999, 999)


def test_a_model_call_that_two_instrumentations_saw_is_one_completed_by_both() -> None:
    outer = model(1, "Hi.", model="m", told=(user("Hello."),))
    inner = a_step("inner", outer.span_id, MODEL, usage=Usage(10, 1), output=(Message("assistant", "Hi."),))
    run = run_of(desk(), outer, a_step("wrap", outer.span_id, CHAIN), inner)
    assert (run.model_calls, run.usage, run.models, run.answer) == (1, Usage(10, 1), ("m",), "Hi.")


def test_what_only_the_inner_of_two_spans_knows_of_the_tokens_of_a_call_counts() -> None:
    outer = model(1, "Hi.", usage=Usage(10, 1))
    run = run_of(desk(), outer, a_step("inner", outer.span_id, MODEL, usage=Usage(99, 99, 5)))
    assert run.usage == Usage(10, 1, 5)


def test_a_call_that_two_instrumentations_saw_is_completed_by_the_inner_one() -> None:
    outer = tool(3, ToolCall("refund", arguments={"order": 7}, result="no such order"))
    inner = tool(4, ToolCall("refund", "c1", error="ValueError: no such order"), parent=outer.span_id)
    run = run_of(desk(), model(1, REFUND), outer, inner)
    assert run.tool_calls == (ToolCall("refund", "c1", {"order": 7}, result="no such order", error="ValueError: no such order"),)
    again = tool(5, ToolCall("refund", "c1", result="paid"), parent=outer.span_id)
    assert run_of(desk(), model(1, REFUND), outer, inner, again).tool_calls[0].error is None


def test_content_is_missing_only_where_no_step_has_it() -> None:
    asked, silent = ToolCall("refund", "c1", {"order": 7}), ToolCall("refund", "c1")
    known = run_of(desk(), model(1, asked), tool(3, silent, flags=("no_content",)), model(5, "Done.", told=(told("paid", "c1"),)))
    assert known.flags == ()
    assert run_of(desk(), model(1, "Hi."), tool(3, ToolCall("refund"), flags=("no_content",))).flags == ("no_content",)
    assert run_of(desk(), model(1, flags=("no_content",)), model(2, "Hi.")).flags == ("no_content",)


def test_model_calls_beside_a_head_that_is_one_are_calls_of_their_own() -> None:
    first = model(1, REFUND, parent="")
    run = run_of(first, model(3, "Done.", parent="", told=(told("paid", "c1"),)), head=first)
    assert (run.model_calls, run.answer) == (2, "Done.")
    assert [(call.result, call.error) for call in run.tool_calls] == [("paid", None)]


def test_a_model_call_of_an_agent_below_a_model_call_is_another_one() -> None:
    outer = model(1, ToolCall("ask_b", "c1"))
    run = run_of(
        desk(), outer, tool(2, ToolCall("ask_b", "c1"), parent=outer.span_id), model(3, "x", parent=f"t2{outer.span_id}")
    )
    assert run.model_calls == 2


# Any trace at all

KINDS = st.sampled_from([AGENT, MODEL, TOOL, CHAIN, OTHER, ORCHESTRATION, StepKind.RETRIEVAL])
CALLS = st.builds(
    ToolCall,
    name=st.sampled_from(["a", "b"]),
    id=st.sampled_from(["", "c1", "c2"]),
    arguments=st.sampled_from([None, {}, {"n": 1}]),
    raw_arguments=st.sampled_from(["", "1", "{}"]),
)
MESSAGES = st.builds(
    Message,
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    text=st.sampled_from(["", "text"]),
    tool_calls=st.lists(CALLS, max_size=2).map(tuple),
    tool_call_id=st.sampled_from(["", "c1", "c2"]),
)


@st.composite
def traces(draw: st.DrawFn) -> tuple[Step, ...]:
    count = draw(st.integers(1, 12))
    ids = [f"s{number}" for number in range(count)]
    found = []
    for span_id in ids:
        kind = draw(KINDS)
        found.append(
            a_step(
                span_id,
                draw(st.sampled_from([*ids, "", "lost"])),
                kind,
                agent=draw(st.sampled_from(["", "a", "desk"])),
                start_ns=T0 + draw(st.integers(0, 5)),
                input=draw(st.lists(MESSAGES, max_size=2).map(tuple)),
                output=draw(st.lists(MESSAGES, max_size=2).map(tuple)),
                tool=draw(CALLS) if kind is TOOL else None,
                usage=draw(st.sampled_from([None, Usage(1, 1)])),
                error=draw(st.sampled_from([None, "broke"])),
            )
        )
    return tuple(found)


@settings(deadline=None)
@given(traces())
def test_any_trace_gives_a_run_with_orphans_and_cycles_in_it(steps: tuple[Step, ...]) -> None:
    run = run_of(*steps)
    assert run == run_of(*steps)
    assert run.completed <= (run.answer is not None)
    assert (run.error is not None) == (run.ended is Ended.ERROR)


@settings(deadline=None)
@given(traces())
def test_no_execution_is_lost_and_none_is_counted_twice(steps: tuple[Step, ...]) -> None:
    run = run_of(*steps)
    executed = [call for call in run.tool_calls if call.error != NOT_EXECUTED]
    spans = [step for step in steps if step.kind is TOOL]
    delegated = [step for step in steps if step.kind is AGENT]
    nested = [step for step in spans if step.parent_id not in ("", "lost")]
    assert (
        len(spans) - len(nested)
        <= len(executed)
        <= len(spans) + len(delegated) + sum(len(m.tool_calls) for s in steps for m in s.output)
    )


def test_a_deep_trace_is_walked_like_any_other() -> None:
    steps = [a_step("0", kind=AGENT, agent="desk")]
    steps += [a_step(str(number), str(number - 1), CHAIN) for number in range(1, 5000)]
    run = run_of(*steps, model(1, "Deep.", parent="4999"))
    assert run.answer == "Deep."


def test_a_long_loop_of_calls_without_ids_is_joined_call_by_call() -> None:
    count = 1500
    asked = [model(2 * number, ToolCall("look", arguments={"n": number})) for number in range(count)]
    done = [tool(2 * number + 1, ToolCall("look", arguments={"n": number}, result=str(number))) for number in range(count)]
    run = run_of(desk(), *asked, *done)
    assert [(call.arguments, call.result) for call in run.tool_calls] == [({"n": number}, str(number)) for number in range(count)]


@pytest.mark.parametrize(
    ("own", "heard", "kept"),
    [
        ('{"amount": 42.5}', "{'amount': 42.5}", "{'amount': 42.5}"),
        ('{"amount": 99.0}', "{'amount': 42.5}", '{"amount": 99.0}'),
        ("all of it", "all of it, and more", "all of it, and more"),
        (None, "told", "told"),
    ],
    ids=["the same in Python's spelling", "another value", "the span was cut", "the span has none"],
)
def test_the_span_is_the_record_where_the_model_was_told_something_else(own: str | None, heard: str, kept: str) -> None:
    run = run_of(desk(), model(1, REFUND), tool(3, ToolCall("refund", result=own)), model(5, "Done.", told=(told(heard, "c1"),)))
    assert [call.result for call in run.tool_calls] == [kept]
