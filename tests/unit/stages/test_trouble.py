"""What the errors of a run tell where nobody measured safety."""

import pytest
from run_builders import a_call, a_run

from pipeline.model.run import Trouble
from pipeline.stages.trouble import trouble_of


def test_a_run_without_error_texts_tells_nothing() -> None:
    assert trouble_of(a_run(a_call("search"))) is Trouble.NONE
    assert trouble_of(a_run(a_call("search", error="not executed"))) is Trouble.NONE


@pytest.mark.parametrize(
    "text",
    [
        "403 Forbidden",
        "PERMISSION  DENIED for table orders",
        "blocked by content_filter",
        "the caller is not\nauthorised",
        "Guardrail tripped",
        "unauthorised",
    ],
)
def test_an_error_of_something_forbidden_is_an_alarm_in_whatever_case_and_spacing(text: str) -> None:
    assert trouble_of(a_run(a_call("search", error=text))) is Trouble.ALARM
    assert trouble_of(a_run(error=text)) is Trouble.ALARM


@pytest.mark.parametrize("text", ["timed out", "connection refused", "unsafely cast", "order 403 not found"])
def test_any_other_error_is_none(text: str) -> None:
    assert trouble_of(a_run(a_call("search", error=text))) is Trouble.ERROR


def test_one_alarm_among_errors_is_enough() -> None:
    assert trouble_of(a_run(a_call("a", error="timed out"), a_call("b", error="access denied"))) is Trouble.ALARM
