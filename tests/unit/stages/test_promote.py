"""From failing runs to golden candidates."""

from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pipeline.model.golden import GoldenCase, GoldenMember
from pipeline.model.step import ToolCall
from pipeline.model.time import MINUTE
from pipeline.scorers.reference.task import folded
from pipeline.stages.promote import FailingRun, case, case_id, members, representative, split


def a_run(run_id: str = "r1", **fields: Any) -> FailingRun:
    """A failing run of a refund agent."""
    defaults: dict[str, Any] = {
        "project": "shop",
        "agent": "refunds",
        "trace_id": f"trace of {run_id}",
        "version": 4,
        "failing": True,
        "reasons": ("gate: forbid_refund",),
        "request": "Refund my order 17",
        "answer": f"Done by {run_id}.",
        "tool_calls": (ToolCall("search", arguments={"order": 17}), ToolCall("refund", error="not executed"), ToolCall("mail")),
        "minute_ns": 29_833_334 * MINUTE,
    }
    return FailingRun(run_id=run_id, **defaults | fields)


def case_of(*runs: FailingRun, stored: GoldenCase | None = None) -> GoldenCase | None:
    rows = [row for run in runs for row in members(run, [case_id("shop", "refunds", "Refund my order 17")])]
    return case(rows, {run.run_id: run for run in runs}, stored)


def made(*runs: FailingRun, stored: GoldenCase | None = None) -> GoldenCase:
    found = case_of(*runs, stored=stored)
    assert found is not None
    return found


@pytest.mark.parametrize("request_", ["  refund MY order\n17 ", "Ｒefund my order 17".replace("Ｒ", "R"), "Refund my order 17"])
def test_requests_that_differ_in_case_and_space_are_one_case(request_: str) -> None:
    assert case_id("shop", "refunds", request_) == case_id("shop", "refunds", "Refund my order 17")


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert folded("Cafe\u0301") == folded("CAF\u00c9")


def test_a_case_belongs_to_a_project_and_an_agent() -> None:
    ids = {case_id(project, agent, "hi") for project in ("shop", "bank") for agent in ("refunds", "orders")}
    assert len(ids) == 4


def test_a_failing_run_is_a_member_of_the_case_of_its_request() -> None:
    [member] = members(a_run())
    assert member == GoldenMember("shop", case_id("shop", "refunds", "Refund my order 17"), "r1", failing=True, version=4)


def test_a_run_that_never_failed_leaves_no_row() -> None:
    assert members(a_run(failing=False)) == ()


def test_a_run_whose_request_was_not_captured_has_no_case() -> None:
    assert members(a_run(request=" \n")) == ()


def test_a_run_that_passes_later_leaves_its_case() -> None:
    [row] = members(a_run())
    assert members(a_run(failing=False, version=8), [row.case_id]) == (replace(row, failing=False, version=8),)


def test_a_run_that_turns_out_to_have_been_asked_something_else_moves_to_that_case() -> None:
    [before] = members(a_run())
    after = members(a_run(request="Cancel it", version=8), [before.case_id])
    assert {(row.case_id, row.failing) for row in after} == {
        (before.case_id, False),
        (case_id("shop", "refunds", "Cancel it"), True),
    }


def test_a_candidate_shows_its_least_failing_run_and_counts_them_all() -> None:
    found = made(a_run("r3"), a_run("r2"), a_run("r1", failing=False, version=8))
    assert (found.state, found.runs, found.representative) == ("candidate", 2, "r2")
    assert (found.input, found.answer, found.why) == ("Refund my order 17", "Done by r2.", ("gate: forbid_refund",))
    assert found.provenance == {"run_id": "r2", "trace_id": "trace of r2", "window": "2026-09-21T14:14:00+00:00"}
    assert found.expected is None


def test_calls_of_the_failing_run_are_suggested_as_reference_and_marked_unreviewed() -> None:
    assert made(a_run()).reference_tools == (
        {"name": "search", "arguments": {"order": 17}, "reviewed": False},
        {"name": "mail", "reviewed": False},
    )


def test_a_case_is_the_same_in_whatever_order_its_runs_came() -> None:
    runs = [a_run("r1", version=8), a_run("r2"), a_run("r3", failing=False)]
    assert len({repr(made(*order)) for order in permutations(runs)}) == 1


def test_a_withdrawn_case_does_not_remember_in_which_order_its_runs_recovered() -> None:
    passing = [a_run("r1", failing=False, version=8, reasons=()), a_run("r2", failing=False, version=8, reasons=())]
    by_way_of_r2 = made(*passing, stored=made(passing[0], a_run("r2")))
    at_once = made(*passing)
    assert replace(by_way_of_r2, version=0) == replace(at_once, version=0)


def test_a_candidate_none_of_whose_runs_fails_is_withdrawn_and_may_return() -> None:
    first = made(a_run())
    withdrawn = made(a_run(failing=False, version=8), stored=first)
    assert (withdrawn.state, withdrawn.runs, withdrawn.representative) == ("withdrawn", 0, "r1")
    assert withdrawn.version > first.version
    again = made(a_run(version=12), stored=withdrawn)
    assert (again.state, again.runs) == ("candidate", 1)
    assert again.version > withdrawn.version


@pytest.mark.parametrize("state", ["accepted", "rejected", "retired"])
def test_what_people_decided_is_not_touched(state: str) -> None:
    decided = replace(made(a_run("r2")), state=state, expected={"contains": "refund"}, version=100)
    after = made(a_run("r2"), a_run("r1"), stored=decided)
    assert after == replace(decided, runs=2, version=101)
    assert made(a_run("r2", failing=False, version=8), stored=decided) == replace(decided, runs=0, version=101)


def test_nothing_is_written_where_nothing_changed() -> None:
    first = made(a_run())
    assert case_of(a_run(), stored=first) is first


def test_a_case_whose_representative_is_not_at_hand_is_not_made_up() -> None:
    [row] = members(a_run())
    assert case([row], {}) is None
    stored = made(a_run())
    assert case([replace(row, failing=False)], {}, stored) == replace(
        stored, state="withdrawn", runs=0, version=stored.version + 1
    )
    assert case([], {}) is None
    assert representative([]) is None


def test_near_equal_requests_share_a_split_whoever_was_asked() -> None:
    assert split("Refund my order 17") == split(" refund MY order 17 ")
    assert made(a_run()).split == split("Refund my order 17")


def test_about_three_in_ten_requests_are_held_out() -> None:
    held = sum(split(f"request {number}") == "held_out" for number in range(4000))
    assert 1120 < held < 1280


@given(st.text())
def test_folding_twice_folds_nothing_more(text: str) -> None:
    assert folded(folded(text)) == folded(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(["r1", "r2", "r3"]), st.booleans(), st.integers(1, 9)), max_size=8, unique_by=lambda row: row[0]
    )
)
def test_count_and_representative_follow_from_the_members_alone(rows: list[tuple[str, bool, int]]) -> None:
    runs = {run_id: a_run(run_id, failing=failing, version=version) for run_id, failing, version in rows}
    found = case_of(*runs.values())
    failing = sorted(run_id for run_id, fails, _ in rows if fails)
    if not rows:
        assert found is None
        return
    assert found is not None
    assert found.runs == len(failing)
    assert found.representative == (failing[0] if failing else min(runs))
    assert found.state == ("candidate" if failing else "withdrawn")
