"""Which spans make which run."""

import random
from itertools import permutations

import pytest
from builders import T0, a_step, steps

from pipeline.model.run import CloseReason
from pipeline.model.step import Step, StepKind
from pipeline.model.time import SECOND
from pipeline.stages.close import AssembleSettings, Due, due
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


def test_what_hangs_in_a_cycle_joins_the_run_of_its_time() -> None:
    cycle = [a_step("x", "y", TOOL), a_step("y", "x", TOOL, start_ns=T0 + 2), a_step("z", "y", MODEL), a_step("s", "s", TOOL)]
    (found,) = group(steps(a_step("a", kind=AGENT), *cycle))
    assert sorted(members(found)) == ["a", "s", "x", "y", "z"]
    assert found.missing_parent


def test_agents_in_and_below_a_cycle_are_grouped_alike_in_any_order() -> None:
    some = [
        a_step("x", "y", CHAIN),
        a_step("y", "b", TOOL),
        a_step("b", "x", AGENT),
        a_step("c", "x", AGENT),
        a_step("m", "c", MODEL),
    ]
    found = {tuple((one.head.span_id, tuple(members(one))) for one in group(steps(*order))) for order in permutations(some)}
    assert len(found) == 1
    assert sorted(span_id for one in found.pop() for span_id in one[1]) == ["b", "c", "m", "x", "y"]


def test_an_agent_below_a_tool_waits_for_its_caller_while_the_span_above_the_tool_has_not_come() -> None:
    sub, call = a_step("sub", "t", AGENT), a_step("t", "turn", TOOL)
    assert [one.called for one in group(steps(sub, call))] == [True]
    assert [one.called for one in group(steps(sub, call, a_step("turn", "never", CHAIN)))] == [True]
    assert [one.called for one in group(steps(sub, a_step("t", kind=TOOL)))] == [False], "a server of tools has nobody above it"
    assert [one.called for one in group(steps(sub, a_step("t", "never", TOOL, parent_is_remote=True)))] == [False]
    (whole,) = group(steps(sub, call, a_step("turn", "a", CHAIN), a_step("a", "never", AGENT)))
    assert (whole.head.span_id, whole.called) == ("a", False)


def test_a_run_below_a_tool_closes_when_its_trace_is_idle_and_not_when_it_has_ended() -> None:
    settings = AssembleSettings()
    (found,) = group(steps(a_step("sub", "t", AGENT), a_step("t", "never", TOOL)))
    assert due(found, settings) == Due(T0 + 2 * SECOND + settings.idle_timeout, CloseReason.IDLE)
    last = T0 + 100 * SECOND
    assert due(found, settings, trace_received_ns=last) == Due(last + settings.idle_timeout, CloseReason.IDLE)


def test_five_thousand_runs_with_lost_spans_and_ten_thousand_nested_agents_are_grouped_in_linear_time() -> None:
    """Minutes, if each agent climbed to the top or each lost span asked every run."""
    nested = [a_step("0", kind=AGENT), *(a_step(str(n), str(n - 1), AGENT) for n in range(1, 10_000))]
    assert heads(group(steps(*nested))) == ["0"]
    runs = [a_step(f"a{n:05}", "never", AGENT, start_ns=T0 + n) for n in range(5000)]
    lost = [a_step(f"t{n:05}", f"lost{n}", TOOL, start_ns=T0 + n) for n in range(5000)]
    assert [members(one) for one in group(steps(*runs, *lost))] == [[f"a{n:05}", f"t{n:05}"] for n in range(5000)]


def test_ten_thousand_spans_in_a_chain_are_grouped_without_recursion() -> None:
    chain = [a_step("0", kind=AGENT), *(a_step(str(n), str(n - 1), MODEL) for n in range(1, 10_000))]
    random.Random(1).shuffle(chain)
    (found,) = group(steps(*chain))
    assert len(found.steps) == 10_000
