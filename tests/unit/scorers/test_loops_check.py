"""loops."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from run_builders import a_call, a_failure, a_run, a_wish

from pipeline.model.result import Outcome
from pipeline.model.step import ToolCall
from pipeline.scorers.loops import loops


def look(order: object = "A-1", result: str | None = "one lamp") -> ToolCall:
    return a_call("lookup", {"order_id": order}, result)


def repeats(*calls: ToolCall) -> float | None:
    finding = loops(a_run(*calls))
    return None if finding is None else finding.value


def test_runs_without_calls_have_no_loops() -> None:
    assert repeats() is None


def test_the_same_lookup_four_times_is_three_repeats() -> None:
    finding = loops(a_run(look(), look(), look(), look()))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.evidence) == (Outcome.FAIL, 3.0, 'lookup({"order_id":"A-1"})')


@pytest.mark.parametrize(
    ("calls", "count"),
    [
        pytest.param((look("A-1"), look("A-2", "a desk")), 0.0, id="other arguments"),
        pytest.param((look(), a_call("search", {}, "new"), look()), 0.0, id="something new between"),
        pytest.param((look(), a_call("search", {}, "new"), look(), look()), 1.0, id="and then nothing new"),
        pytest.param((look(result="pending"), look(result="pending"), look(result="sent")), 1.0, id="polling until it changes"),
        pytest.param((a_failure("lookup", {}), a_call("lookup", {})), 0.0, id="a retry that succeeds"),
        pytest.param((a_failure("lookup", {}), a_failure("lookup", {})), 1.0, id="a retry that fails alike"),
        pytest.param((a_wish("fly", {}), a_wish("fly", {})), 1.0, id="asked again for what does not exist"),
        pytest.param((look(), a_wish("lookup", {"order_id": "A-1"})), 1.0, id="a call that brought nothing, being cut off"),
        pytest.param((look(1), look(1.0)), 1.0, id="numbers by value"),
        pytest.param((look(9007199254740993), look(9007199254740992)), 0.0, id="big numbers not through floats (R110)"),
        pytest.param((look(True), look(1)), 0.0, id="true is not 1"),
        pytest.param((a_call("lookup", {}), a_call("lookup", {})), 1.0, id="no arguments are arguments (R106)"),
    ],
)
def test_a_repeat_is_an_equal_call_since_which_nothing_new_was_returned(calls: tuple[ToolCall, ...], count: float) -> None:
    assert repeats(*calls) == count


def test_ping_pong_is_a_loop_from_its_second_round_on() -> None:
    one, other = look("A-1", "x"), look("A-2", "y")
    assert repeats(one, other, one, other, one, other) == 3.0


def test_the_order_of_keys_is_no_difference() -> None:
    assert repeats(a_call("f", {"a": [1, {"b": 2}], "c": 3}), a_call("f", {"c": 3, "a": [1, {"b": 2}]})) == 1.0


@pytest.mark.parametrize(
    ("calls", "word", "lower", "upper"),
    [
        ((a_call("lookup"), a_call("lookup")), "arguments_not_captured", 0.0, 1.0),
        ((look(), a_call("lookup", result="one lamp")), "arguments_not_captured", 0.0, 1.0),
        ((a_call("lookup", result="one lamp"), look()), "arguments_not_captured", 0.0, 1.0),
        ((look(result=None), look(result=None)), "results_not_captured", 0.0, 1.0),
        ((look(), look(), look(result=None)), "results_not_captured", 1.0, 2.0),
    ],
)
def test_what_was_not_captured_leaves_bounds_and_no_number(
    calls: tuple[ToolCall, ...], word: str, lower: float, upper: float
) -> None:
    finding = loops(a_run(*calls))
    assert finding is not None
    assert (finding.outcome, finding.value, finding.lower, finding.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, lower, upper)
    assert finding.reason.startswith(f"{word}: ")


def test_tools_called_once_need_no_arguments() -> None:
    assert repeats(a_call("lookup"), a_call("refund")) == 0.0


def test_what_was_not_captured_does_not_matter_where_something_known_was_new() -> None:
    assert repeats(a_call("lookup", result=None), a_call("search", {}, "new"), a_call("lookup", result=None)) == 0.0


CALLS = st.lists(
    st.builds(
        ToolCall,
        name=st.sampled_from(["lookup", "search"]),
        arguments=st.sampled_from([{}, {"order_id": 1}]),
        result=st.sampled_from(["x", "y"]),
        error=st.sampled_from([None, None, "timeout", "not executed"]),
    ),
    min_size=1,
    max_size=8,
)


@given(calls=CALLS, data=st.data())
def test_what_is_withheld_widens_the_bounds_around_the_true_count(calls: list[ToolCall], data: st.DataObject) -> None:
    true = repeats(*calls)
    assert true is not None
    lower, upper = true, true
    for call in range(len(calls)):
        withheld: dict[str, Any] = data.draw(
            st.sampled_from([{}, {"arguments": None}, {"result": None}, {"arguments": None, "result": None}])
        )
        calls[call] = replace(calls[call], **withheld)
        finding = loops(a_run(*calls))
        assert finding is not None
        assert finding.lower is not None
        assert finding.upper is not None
        assert finding.lower <= lower <= upper <= finding.upper
        lower, upper = finding.lower, finding.upper


def test_a_long_run_is_read_in_linear_time() -> None:
    finding = loops(a_run(*[a_call("lookup", result=str(index)) for index in range(20_000)]))
    assert finding is not None
    assert finding.value == 0.0
