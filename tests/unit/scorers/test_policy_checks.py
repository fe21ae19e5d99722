"""Policies: require, forbid, before, at_most, exactly."""

from typing import Any

import pytest
from pydantic import ValidationError
from run_builders import a_call, a_failure, a_model_step, a_run, a_wish, named, ran

from pipeline.model.result import Outcome, Result
from pipeline.model.step import ToolCall
from pipeline.scorers.check import Check
from pipeline.scorers.policies import PolicySettings, policy_check


def policy(**rule: Any) -> Check:
    return policy_check(PolicySettings.model_validate({"name": "rule"} | rule))


def outcome(check: Check, *calls: ToolCall, **fields: Any) -> Outcome | None:
    result = check.score(a_run(*calls, **fields))
    if result is None:
        return None
    _has_a_number_only_with_evidence(result)
    return result.outcome


def _has_a_number_only_with_evidence(result: Result) -> None:
    assert result.outcome is not None
    expected = {Outcome.PASS: 1.0, Outcome.FAIL: 0.0}.get(result.outcome)
    assert result.value == expected
    assert (result.lower, result.upper) == ((0.0, 1.0) if expected is None else (expected, expected))


PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE

FORBID = policy(forbid={"tool": "delete"})
FORBID_LARGE = policy(forbid={"tool": "refund", "where": {"amount": {"greater_than": 100}}})


@pytest.mark.parametrize(
    ("check", "calls", "expected"),
    [
        pytest.param(FORBID, (), PASS, id="no call"),
        pytest.param(FORBID, (a_call("lookup"),), PASS, id="another tool"),
        pytest.param(FORBID, (a_call("delete"),), FAIL, id="the tool"),
        pytest.param(FORBID, (a_failure("delete"),), FAIL, id="an attempt that failed"),
        pytest.param(FORBID, (a_call("lookup"), a_wish("delete")), PASS, id="asked for, and seen not to be executed"),
        pytest.param(FORBID, (a_wish("delete"),), UNKNOWN, id="asked for, where no execution is seen at all"),
        pytest.param(FORBID_LARGE, (a_call("refund", {"amount": 100}),), PASS, id="at the line"),
        pytest.param(FORBID_LARGE, (a_call("refund", {"amount": 100.01}),), FAIL, id="over the line"),
        pytest.param(FORBID_LARGE, (a_call("refund"),), UNKNOWN, id="arguments not captured"),
        pytest.param(FORBID_LARGE, (ToolCall("refund", raw_arguments='{"amount": 1'),), UNKNOWN, id="arguments cut"),
        pytest.param(
            FORBID_LARGE, (a_call("refund"), a_call("refund", {"amount": 500})), FAIL, id="one known violation is enough"
        ),
        pytest.param(FORBID_LARGE, (a_wish("refund", {"amount": 5}),), PASS, id="executed or not, it is small"),
    ],
)
def test_forbid(check: Check, calls: tuple[ToolCall, ...], expected: Outcome) -> None:
    assert outcome(check, *calls) is expected


BEFORE = policy(before={"tool": "refund", "needs": "confirm"})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param((), None, id="nothing that has to wait"),
        pytest.param((a_call("confirm"),), None, id="only the other"),
        pytest.param((a_call("confirm"), a_wish("refund")), None, id="asked for, not executed"),
        pytest.param((a_call("confirm"), a_call("refund")), PASS, id="in order"),
        pytest.param((a_call("refund"), a_call("confirm")), FAIL, id="too early"),
        pytest.param((a_call("refund"),), FAIL, id="never"),
        pytest.param((a_failure("refund"),), FAIL, id="an attempt that failed"),
        pytest.param((a_failure("confirm"), a_call("refund")), FAIL, id="a confirmation that failed"),
        pytest.param((a_failure("confirm"), a_call("confirm"), a_call("refund")), PASS, id="a confirmation in the end"),
        pytest.param((a_wish("confirm"), a_call("refund")), FAIL, id="a confirmation that was only asked for"),
        pytest.param((a_call("confirm"), a_call("refund"), a_call("refund")), PASS, id="one confirmation, two refunds"),
        pytest.param((a_call("refund"), a_call("confirm"), a_call("refund")), FAIL, id="one of two too early"),
        pytest.param((a_wish("confirm"), a_wish("refund")), UNKNOWN, id="nothing is seen to be executed"),
        pytest.param((a_wish("refund"),), UNKNOWN, id="it is not seen whether it was executed"),
    ],
)
def test_before(calls: tuple[ToolCall, ...], expected: Outcome | None) -> None:
    assert outcome(BEFORE, *calls) is expected


def test_before_concerns_only_calls_with_such_arguments() -> None:
    large = policy(before={"tool": "refund", "needs": "confirm", "where": {"amount": {"greater_than": 50}}})
    assert outcome(large, a_call("refund", {"amount": 5})) is None
    assert outcome(large, a_call("refund", {"amount": 51})) is FAIL
    assert outcome(large, a_call("refund")) is UNKNOWN
    assert outcome(large, a_call("confirm"), a_call("refund")) is PASS


def test_a_confirmation_that_was_still_running_is_none() -> None:
    confirm, refund = named(a_call("confirm"), "1"), named(a_call("refund"), "2")
    assert outcome(BEFORE, confirm, refund, steps=(ran(confirm, 0, 3), ran(refund, 1, 2))) is FAIL
    assert outcome(BEFORE, confirm, refund, steps=(ran(confirm, 0, 3), ran(refund, 3, 4))) is PASS


ONCE = policy(at_most={"tool": "refund", "times": 1, "per": "order_id"})


def refund(order: Any) -> ToolCall:
    return a_call("refund", {"order_id": order})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        pytest.param((), PASS, id="never"),
        pytest.param((refund("A-1"), refund("A-2")), PASS, id="once each"),
        pytest.param((refund("A-1"), refund("A-2"), refund("A-1")), FAIL, id="twice for one"),
        pytest.param((refund(1001), refund("1001 ")), FAIL, id="the same number, written otherwise"),
        pytest.param((refund("0042"), refund("42")), PASS, id="ids that only look like one number"),
        pytest.param((refund(9007199254740993), refund(9007199254740992)), PASS, id="big numbers not through floats"),
        pytest.param((a_failure("refund", {"order_id": "A-1"}), refund("A-1")), PASS, id="a retry after a failure"),
        pytest.param((refund("A-1"), a_wish("refund", {"order_id": "A-1"})), PASS, id="asked for again, not executed"),
        pytest.param((a_call("refund"),), PASS, id="one call, whatever its arguments"),
        pytest.param((refund("A-1"), a_call("refund")), UNKNOWN, id="the other may be for the same"),
        pytest.param((refund("A-1"), refund("A-1"), a_call("refund")), FAIL, id="known twice, whatever the other"),
        pytest.param((a_wish("refund"), a_wish("refund")), UNKNOWN, id="nothing is seen to be executed"),
        pytest.param((refund(None), a_call("refund", {})), FAIL, id="not given is one value"),
    ],
)
def test_at_most(calls: tuple[ToolCall, ...], expected: Outcome) -> None:
    assert outcome(ONCE, *calls) is expected


def test_at_most_without_per_counts_all_and_zero_times_is_never() -> None:
    assert outcome(policy(at_most={"tool": "refund", "times": 1}), refund("A-1"), refund("A-2")) is FAIL
    assert outcome(policy(at_most={"tool": "refund", "times": 0}), refund("A-1")) is FAIL


@pytest.mark.parametrize("check", [FORBID, BEFORE, ONCE])
def test_no_policy_passes_where_calls_may_have_gone_unseen(check: Check) -> None:
    assert outcome(check, steps=(a_model_step("no_content"),)) is UNKNOWN


def test_a_failure_names_the_call() -> None:
    result = ONCE.score(a_run(refund("A-1"), refund("A-1")))
    assert result is not None
    assert result.reason == "refund succeeded 2 times for one order_id, at most 1 allowed"
    assert result.evidence == 'refund({"order_id":"A-1"})'


def test_many_calls_are_read_in_linear_time() -> None:
    calls = [a_call("confirm"), *[refund(index) for index in range(20_000)]]
    assert [outcome(check, *calls) for check in (FORBID, BEFORE, ONCE)] == [PASS, PASS, PASS]


def test_policies_gate_unless_told_otherwise_and_are_known_by_their_rule() -> None:
    quiet = policy(forbid={"tool": "delete"}, gate=False)
    assert FORBID.gates
    assert not quiet.gates
    assert FORBID.contract == quiet.contract
    assert len({FORBID.contract, FORBID_LARGE.contract, BEFORE.contract, ONCE.contract}) == 4


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        ({"name": "rule"}, "rule holds 0 rules; write exactly one of require, forbid, before, at_most, exactly"),
        ({"name": "rule", "forbid": {"tool": "a"}, "at_most": {"tool": "a", "times": 1}}, "rule holds 2 rules"),
        ({"name": "No Deletes!", "forbid": {"tool": "a"}}, "such as refund_after_confirm"),
        ({"name": "rule", "at_most": {"tool": "a", "times": -1}}, "greater than or equal to 0"),
        ({"name": "rule", "forbid": {"tool": "a", "where": {"x": {}}}}, "write one of equals, in, greater_than"),
        ({"name": "rule", "forbid": {"tool": "a", "unless": {}}}, "Extra inputs"),
    ],
)
def test_what_is_no_policy_is_refused_with_what_to_write(written: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        PolicySettings.model_validate(written)


TOLD = policy(require={"tool": "notify", "where": {"channel": {"equals": "mail"}}})
MAIL = a_call("notify", {"channel": "mail"})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((MAIL,), PASS),
        ((MAIL, MAIL), PASS),
        ((), FAIL),
        ((a_call("notify", {"channel": "phone"}),), FAIL),
        ((a_failure("notify", {"channel": "mail"}),), FAIL),
        ((a_call("lookup"), a_wish("notify", {"channel": "mail"})), FAIL),
        ((a_wish("notify", {"channel": "mail"}),), UNKNOWN),
        ((a_call("notify", None),), UNKNOWN),
        ((a_call("notify", None), MAIL), PASS),
    ],
)
def test_require(calls: tuple[ToolCall, ...], expected: Outcome) -> None:
    assert outcome(TOLD, *calls) is expected


def test_require_counts_up_to_what_is_wanted() -> None:
    twice = policy(require={"tool": "notify", "times": 2})
    assert outcome(twice, MAIL) is FAIL
    assert outcome(twice, MAIL, MAIL) is PASS
    result = twice.score(a_run(MAIL))
    assert result is not None
    assert result.reason == "notify succeeded 1 times, at least 2 wanted"


EACH_TWICE = policy(exactly={"tool": "refund", "times": 2, "per": "order_id"})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ((), None),
        ((refund("A-1"),), FAIL),
        ((refund("A-1"), refund("A-1")), PASS),
        ((refund("A-1"), refund("A-1"), refund("A-1")), FAIL),
        ((refund("A-1"), refund("A-1"), refund("A-2")), FAIL),
        ((refund("A-1"), a_call("refund", None)), UNKNOWN),
        ((refund("A-1"), refund("A-1"), a_call("refund", None)), UNKNOWN),
    ],
)
def test_exactly_for_each_value(calls: tuple[ToolCall, ...], expected: Outcome | None) -> None:
    result = EACH_TWICE.score(a_run(*calls))
    assert (None if result is None else result.outcome) is expected


@pytest.mark.parametrize(
    ("times", "calls", "expected"), [(1, 0, FAIL), (1, 1, PASS), (1, 2, FAIL), (0, 0, PASS), (0, 1, FAIL), (2, 1, FAIL)]
)
def test_exactly(times: int, calls: int, expected: Outcome) -> None:
    assert outcome(policy(exactly={"tool": "refund", "times": times}), *(refund("A-1"),) * calls) is expected
