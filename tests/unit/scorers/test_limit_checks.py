"""Limits."""

from decimal import Decimal
from typing import Any

import pytest
from builders import T0
from pydantic import ValidationError
from run_builders import a_call, a_model_step, a_run, a_wish

from pipeline.model.result import Outcome, Result
from pipeline.model.run import Run
from pipeline.model.step import Usage
from pipeline.model.time import SECOND
from pipeline.scorers.check import Check
from pipeline.scorers.limits import LimitsSettings, limit_checks


def limit(name: str, written: Any) -> Check:
    (check,) = limit_checks(LimitsSettings.model_validate({name: written}))
    return check


def score(name: str, written: Any, run: Run) -> Result:
    result = limit(name, written).score(run)
    assert result is not None
    return result


def test_nothing_is_limited_by_default() -> None:
    assert not tuple(limit_checks(LimitsSettings()))


RUN = a_run(
    a_call("lookup"),
    a_wish("refund"),
    steps=(a_model_step(), a_model_step()),
    usage=Usage(input=120, output=30),
    end_ns=T0 + 2 * SECOND + SECOND // 2,
)


@pytest.mark.parametrize(
    ("name", "used"), [("steps", 2.0), ("tool_calls", 1.0), ("seconds", 2.5), ("input_tokens", 120.0), ("output_tokens", 30.0)]
)
def test_the_value_is_what_was_used_and_the_limit_itself_still_passes(name: str, used: float) -> None:
    at, under = score(name, used, RUN), score(name, used - 0.1, RUN)
    assert (at.outcome, at.value, at.dimension) == (Outcome.PASS, used, name)
    assert (under.outcome, under.value) == (Outcome.FAIL, used)
    assert "over the limit" in under.reason


def test_a_limit_of_zero_is_a_limit_and_zero_meets_it() -> None:
    assert score("tool_calls", 0, a_run()).outcome is Outcome.PASS
    assert score("tool_calls", 0, RUN).outcome is Outcome.FAIL


def test_seconds_are_compared_exactly() -> None:
    run = a_run(end_ns=T0 + SECOND // 10)
    assert score("seconds", 0.1, run).outcome is Outcome.PASS
    assert score("seconds", Decimal("0.0999999999"), run).outcome is Outcome.FAIL


@pytest.mark.parametrize(
    ("name", "run", "word"),
    [
        ("input_tokens", a_run(usage=Usage(output=3)), "usage_not_captured"),
        ("output_tokens", a_run(usage=Usage(input=3)), "usage_not_captured"),
        ("seconds", a_run(end_ns=T0 - 1), "times_not_captured"),
        ("seconds", a_run(start_ns=0), "times_not_captured"),
        ("tool_calls", a_run(a_wish("refund")), "execution_not_captured"),
        ("tool_calls", a_run(steps=(a_model_step("no_content"),)), "calls_not_captured"),
    ],
)
def test_what_was_not_measured_is_neither_zero_nor_under_the_limit(name: str, run: Run, word: str) -> None:
    result = score(name, 1000, run)
    assert (result.outcome, result.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)
    assert result.reason.startswith(f"{word}: ")


def test_limits_gate_only_if_told_to_and_are_known_by_their_maximum() -> None:
    assert not limit("steps", 20).gates
    assert limit("steps", {"max": 20, "gate": True}).gates
    assert limit("steps", 20).contract == limit("steps", {"max": "20.0", "gate": True}).contract
    assert limit("steps", 20).contract != limit("steps", 21).contract


@pytest.mark.parametrize("written", [-1, "many", True, "NaN", {"most": 3}])
def test_what_is_no_limit_is_refused(written: Any) -> None:
    with pytest.raises(ValidationError):
        LimitsSettings.model_validate({"steps": written})
