"""Which spans make which run."""

import random

import pytest
from builders import T0, a_step, steps

from pipeline.model.step import Step, StepKind
from pipeline.model.time import SECOND
from pipeline.stages.group import Group, group

AGENT, MODEL, TOOL, CHAIN, ORCHESTRATION, IGNORED = (
    StepKind.AGENT,
    StepKind.MODEL,
    StepKind.TOOL,
    StepKind.CHAIN,
    StepKind.ORCHESTRATION,
    StepKind.IGNORED,
)


def heads(groups: tuple[Group, ...]) -> list[str]:
    return [one.head.span_id for one in groups]


def members(one: Group) -> list[str]:
    return [step.span_id for step in one.steps]


def test_a_topmost_agent_heads_a_run_and_its_sub_agents_are_steps() -> None:
    found = group(steps(a_step("a", kind=AGENT), a_step("t", "a", TOOL), a_step("sub", "t", AGENT), a_step("m", "sub", MODEL)))
    assert heads(found) == ["a"]
    assert sorted(members(found[0])) == ["a", "m", "sub", "t"]


def test_a_server_span_above_an_agent_is_no_part_of_the_run() -> None:
    found = group(steps(a_step("http"), a_step("a", "http", AGENT), a_step("db", "http")))
    assert heads(found) == ["a"]
    assert members(found[0]) == ["a"]
    assert found[0].parent_seen


@pytest.mark.parametrize("kind", [ORCHESTRATION, CHAIN], ids=["orchestration", "root chain"])
def test_what_stands_above_the_agents_heads_the_run_in_their_place(kind: StepKind) -> None:
    found = group(steps(a_step("w", kind=kind), a_step("one", "w", AGENT), a_step("two", "w", AGENT)))
    assert heads(found) == ["w"]
    assert sorted(members(found[0])) == ["one", "two", "w"]


def test_a_chain_that_is_no_root_heads_nothing() -> None:
    assert heads(group(steps(a_step("http"), a_step("c", "http", CHAIN), a_step("a", "c", AGENT)))) == ["a"]


def test_two_agents_under_one_server_span_are_two_runs() -> None:
    found = group(steps(a_step("http"), a_step("a", "http", AGENT), a_step("b", "http", AGENT, start_ns=T0 + SECOND)))
    assert heads(found) == ["a", "b"]


def test_a_bare_model_call_is_a_run_of_its_own() -> None:
    assert heads(group(steps(a_step("m", kind=MODEL)))) == ["m"]


def test_without_agents_the_root_heads_the_whole_trace() -> None:
    found = group(steps(a_step("root"), a_step("m", "root", MODEL), a_step("lost", "never", TOOL)))
    assert heads(found) == ["root"]
    assert sorted(members(found[0])) == ["lost", "m", "root"]
    assert found[0].missing_parent


def test_a_trace_without_model_or_tool_call_is_no_agent_run() -> None:
    assert group(steps(a_step("http"), a_step("db", "http"))) == ()


def test_ignored_spans_and_all_below_them_are_no_part_of_anything() -> None:
    assert group(steps(a_step("judge", kind=IGNORED), a_step("m", "judge", MODEL), a_step("a", "judge", AGENT))) == ()


def test_a_step_whose_parent_never_came_joins_the_run_of_its_time() -> None:
    found = group(
        steps(
            a_step("a", kind=AGENT),
            a_step("b", kind=AGENT, start_ns=T0 + 10 * SECOND),
            a_step("lost", "never", TOOL, start_ns=T0 + 11 * SECOND),
        )
    )
    assert [sorted(members(one)) for one in found] == [["a"], ["b", "lost"]]
    assert [one.missing_parent for one in found] == [False, True]


def test_an_agent_whose_parent_is_unseen_says_so() -> None:
    (found,) = group(steps(a_step("a", "never", AGENT)))
    assert not found.parent_seen
    (remote,) = group(steps(a_step("a", "never", AGENT, parent_is_remote=True)))
    assert remote.parent_seen


def test_no_child_comes_before_its_parent_whatever_the_clocks_say() -> None:
    (found,) = group(
        steps(
            a_step("a", kind=AGENT, start_ns=T0 + 5 * SECOND),
            a_step("late", "a", TOOL, start_ns=T0 + 9 * SECOND),
            a_step("skewed", "a", MODEL, start_ns=T0),
        )
    )
    assert members(found) == ["a", "skewed", "late"]


@pytest.mark.parametrize(
    "some",
    [
        [a_step("a", "a", AGENT)],
        [a_step("a", "b", AGENT), a_step("b", "a", AGENT)],
        [a_step("a", "b", MODEL), a_step("b", "a", TOOL)],
        [a_step("a", kind=AGENT), a_step("x", "y", TOOL), a_step("y", "x", TOOL)],
    ],
    ids=["self-parent", "two agents in a cycle", "a cycle without agents", "a cycle beside a run"],
)
def test_cycles_end(some: list[Step]) -> None:
    assert len(group(steps(*some))) == 1


def test_ten_thousand_spans_in_a_chain_are_grouped_without_recursion() -> None:
    chain = [a_step("0", kind=AGENT), *(a_step(str(n), str(n - 1), MODEL) for n in range(1, 10_000))]
    random.Random(1).shuffle(chain)
    (found,) = group(steps(*chain))
    assert len(found.steps) == 10_000
