"""Several agents in one run: who did what, who spent what, and nothing of it twice."""

import json
from pathlib import Path

import pytest
import recordings
from builders import T0, a_step
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.stages.test_trajectory import AGENT, CHAIN, MODEL, ORCHESTRATION, TOOL, desk, model, run_of, tool

from pipeline.model.run import Part, Run
from pipeline.model.step import Step, StepKind, ToolCall, Usage
from pipeline.model.time import SECOND

TEN = Usage(10, 1, cost_usd=0.5)


def paths(run: Run) -> list[tuple[str, int, int, int | None]]:
    """Of each part its path, model calls, tool calls and input tokens."""
    return [(one.path, one.model_calls, one.tool_calls, one.usage.input) for one in run.parts]


def agent(name: str, parent: str, at: int = 1, span_id: str = "") -> Step:
    return a_step(span_id or name, parent, AGENT, agent=name, start_ns=T0 + at * SECOND)


def test_an_agent_used_as_a_tool_is_a_part_and_its_call_is_its_callers() -> None:
    ask = ToolCall("ask_math", "c1", {"n": 2})
    run = run_of(
        desk(),
        model(1, ask, usage=TEN),
        tool(2, ask),
        agent("math", "t2agent", 3),
        model(4, ToolCall("add", "c2"), parent="math", usage=TEN),
        tool(5, ToolCall("add", "c2", result="4"), parent="math"),
        model(6, "It is 4.", usage=TEN),
    )
    assert paths(run) == [("", 2, 1, 20), ("math", 1, 1, 10)]
    assert [(call.agent, call.name) for call in run.tool_calls] == [("", "ask_math"), ("math", "add")]


def test_a_called_agent_without_a_tool_span_is_called_by_the_one_above() -> None:
    run = run_of(desk(), model(1, ToolCall("helper", "c1")), agent("helper", "agent", 2), model(3, "Sure.", parent="helper"))
    assert [(call.agent, call.name) for call in run.tool_calls] == [("", "helper")]


def test_after_a_hand_over_the_other_agent_is_a_part_whether_it_is_beside_or_below() -> None:
    swarm = a_step("agent", kind=ORCHESTRATION, end_ns=T0 + 90 * SECOND)
    beside = run_of(
        swarm,
        agent("desk", "agent"),
        model(2, "Over to you.", parent="desk"),
        agent("refunds", "agent", 3),
        model(4, "Paid.", parent="refunds"),
    )
    assert paths(beside) == [("", 1, 0, None), ("refunds", 1, 0, None)]
    below = run_of(desk(), agent("refunds", "agent"), model(2, "Back.", parent="refunds"), agent("desk", "refunds", 3, "again"))
    assert paths(below) == [("", 0, 0, None), ("refunds", 1, 0, None), ("refunds/desk", 0, 0, None)]


def test_spans_that_a_framework_nests_under_one_name_are_one_part() -> None:
    run = run_of(desk(), agent("desk", "agent", 1, "inner"), a_step("node", "inner", CHAIN), agent("", "node", 2, "nameless"))
    assert [(one.path, one.agent, one.steps) for one in run.parts] == [("", "desk", 4)]


def test_a_call_that_nobody_executed_is_of_the_agent_that_asked() -> None:
    run = run_of(desk(), agent("helper", "agent"), model(2, ToolCall("drop", "c1"), parent="helper"))
    assert [(call.agent, call.error) for call in run.tool_calls] == [("helper", "not executed")]
    assert [one.failed_calls for one in run.parts] == [0, 1]


def test_an_agents_own_total_is_its_parts_where_no_model_call_below_it_tells() -> None:
    helper = a_step("helper", "agent", AGENT, agent="helper", usage=Usage(7, 7))
    run = run_of(desk(usage=Usage(999, 999)), model(1, "x", usage=TEN), helper)
    assert [one.usage for one in run.parts] == [TEN, Usage(7, 7)]
    assert run.usage == Usage(17, 8)  # what one of them reported to have cost is not what the run did


def test_a_name_with_a_slash_is_one_name_and_a_path_ends_somewhere() -> None:
    slash = run_of(desk(), agent("a/b", "agent"))
    assert [(one.path, one.agent) for one in slash.parts] == [("", "desk"), ("a%2Fb", "a/b")]
    chain = [agent(f"a{n}", "agent" if n == 0 else f"a{n - 1}", n) for n in range(5000)]
    deep = run_of(desk(), *chain)
    assert max(one.path.count("/") for one in deep.parts) == 7
    assert sum(one.steps for one in deep.parts) == 5001


kinds = st.sampled_from([AGENT, MODEL, TOOL, CHAIN, ORCHESTRATION])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), kinds, st.sampled_from("abc"), st.booleans()), max_size=30))
def test_every_step_call_and_token_is_in_one_part(drawn: list[tuple[int, StepKind, str, bool]]) -> None:
    steps = [desk()]
    for number, (parent, kind, name, spends) in enumerate(drawn):
        steps.append(
            a_step(
                f"s{number}",
                steps[parent % len(steps)].span_id,
                kind,
                start_ns=T0 + number,
                agent=name if kind == AGENT else "",
                tool=ToolCall(name) if kind == TOOL else None,
                usage=TEN if spends else None,
            )
        )
    run = run_of(*steps)
    assert sum(one.steps for one in run.parts) == len(steps)
    assert sum(one.model_calls for one in run.parts) == run.model_calls
    assert sum(one.tool_calls for one in run.parts) == len(run.tool_calls)
    assert sum(one.usage.input or 0 for one in run.parts) == (run.usage.input or 0)
    assert {call.agent for call in run.tool_calls} <= {one.path for one in run.parts}
    assert len({one.path for one in run.parts}) == len(run.parts)


DELEGATIONS = sorted(path for path in recordings.recordings("live") if path.stem in ("agent_as_tool", "handoff"))


@pytest.mark.parametrize("path", DELEGATIONS, ids=[f"{path.parent.name}-{path.stem}" for path in DELEGATIONS])
def test_in_recordings_the_refunds_desk_paid_and_each_model_call_is_its_callers(path: Path) -> None:
    """In these scenarios the first agent calls the refunds desk or hands over to it, and only that one has the tool to pay."""
    lines = (path.parent / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    (truth,) = [one for one in map(json.loads, lines) if one["scenario"] == path.stem]
    (run,) = recordings.runs_of(recordings.arrived(path))
    own, other = run.parts
    assert (own.path, other.path.replace("_", "-")) == ("", "refunds-desk")
    assert [call.agent for call in run.tool_calls if call.name == "issue_refund"] == [other.path]
    assert not any(call.agent for call in run.tool_calls if call.name != "issue_refund")
    assert own.model_calls + other.model_calls == truth["model_calls"]
    for one in (own, other):
        assert one.usage.input == 120 * one.model_calls, "each call of a model took 120 tokens"


def test_a_part_says_what_it_is() -> None:
    (one,) = run_of(desk(), model(1, "Hi.", usage=TEN)).parts
    assert one == Part("", "desk", steps=2, model_calls=1, tool_calls=0, failed_calls=0, usage=TEN)
