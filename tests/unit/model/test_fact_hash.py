"""The hash of a judgment and of feedback: it names all that they say, and no field that is added later moves it."""

import pytest
from msgspec.structs import replace

from pipeline.model.result import Feedback, Judgment, Outcome, content_hash
from sinks.clickhouse.fact_rows import feedback_of, feedback_row, judgment_of, judgment_row

JUDGMENT = Judgment(
    "p", "t", "r", 4, "h", "c", "tone", Outcome.PASS, 4.0, reason="It agrees.", cost_usd=0.003, flags=("a",), judged_ns=7
)
FEEDBACK = Feedback("p", "t", "f", -1.0, comment="No.", received_ns=7)


@pytest.mark.parametrize("fact", [JUDGMENT, FEEDBACK], ids=["judgment", "feedback"])
def test_every_field_but_when_it_came_is_in_the_hash(fact: Judgment | Feedback) -> None:
    known = content_hash(fact)
    for name in fact.__struct_fields__:
        value = getattr(fact, name)
        other = (
            Outcome.FAIL
            if isinstance(value, Outcome)
            else ("b",)
            if isinstance(value, tuple)
            else 99
            if isinstance(value, int | float)
            else "x"
        )
        came = name in ("judged_ns", "received_ns", "run_version")
        assert (content_hash(replace(fact, **{name: other})) == known) is came, name


def test_a_row_carries_the_hash_of_what_is_read_back_also_where_the_store_cannot_hold_what_was_said() -> None:
    odd = replace(JUDGMENT, reason="half a \ud800 pair", input_tokens=-5, cost_usd=None)
    row = {
        name: value.replace("\ud800", "\ufffd") if isinstance(value, str) else value for name, value in judgment_row(odd).items()
    }
    assert content_hash(judgment_of(row)) == row["content_hash"]
    said = replace(FEEDBACK, comment="\ud83d")
    row = {
        name: value.replace("\ud83d", "\ufffd") if isinstance(value, str) else value for name, value in feedback_row(said).items()
    }
    assert content_hash(feedback_of(row)) == row["content_hash"]


def test_what_is_at_its_default_is_not_hashed() -> None:
    assert content_hash(replace(FEEDBACK, author="")) == content_hash(FEEDBACK)
