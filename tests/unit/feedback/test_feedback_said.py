"""What a client may say, and what it is told when it cannot be understood."""

import json
from typing import Any

import pytest

from collectors.feedback.said import LONGEST, LONGEST_COMMENT, MOST, fact, read
from pipeline.errors import PermanentError
from pipeline.model.result import Feedback

TRACE = "ab" * 16


def body(**fields: Any) -> bytes:
    return json.dumps({"trace_id": TRACE, "value": 1} | fields).encode()


def of(raw: bytes, key: str = "") -> Feedback:
    (said,) = read(raw)
    return fact(said, "shop", TRACE, "", key, 7)


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), (-0.5, -0.5), (True, 1.0), (False, -1.0), ("up", 1.0), (" Down ", -1.0), (0, 0.0), (4.5, 4.5)]
)
def test_a_value_is_a_number_or_says_up_or_down(value: Any, number: float) -> None:
    assert of(body(value=value)).value == number


def test_what_is_said_is_kept_as_it_was_said() -> None:
    found = of(body(author="ann", comment="wrong order", trace_id=TRACE.upper()))
    assert (found.project, found.trace_id, found.author, found.comment, found.received_ns) == (
        "shop",
        TRACE,
        "ann",
        "wrong order",
        7,
    )


def test_null_is_nothing() -> None:
    assert of(body(author=None, comment=None, id=None, run_id=None)) == of(body())


def test_several_may_be_said_at_once() -> None:
    raw = b"[" + b",".join(body(value=value) for value in (1, -1)) + b"]"
    assert [said.value for said in read(raw)] == [1, -1]
    assert read(b"[]") == []


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "no feedback"),
        (b"{", "no feedback"),
        (b"7", "no feedback"),
        (b"[" * 100_000, "no feedback"),
        (b"\xff", "no feedback"),
        (b'{"trace_id": "' + TRACE.encode() + b'"}', "missing required field `value`"),
        (body(valeu=1), "unknown field `valeu`"),
        (body(value=None), "value"),
        (body(value="great"), "send a number"),
        (body(value=[1]), "value"),
        (body(value=float("nan")), "no feedback"),
        (b'{"trace_id": "' + TRACE.encode() + b'", "value": 1e999}', "value"),
        (body(trace_id=None), "must name what it is about"),
        (body(conversation_id="c"), "must name what it is about"),
        (body(trace_id="abc"), "trace_id must be 32 hex digits"),
        (body(run_id="abc"), "run_id must be 32 hex digits"),
        (body(run_id=7), "Expected `str | null`"),
        (body(comment="x" * (LONGEST_COMMENT + 1)), "comment is longer than"),
        (body(author="x" * (LONGEST + 1)), "author is longer than"),
        (body(id="x" * (LONGEST + 1)), "id is longer than"),
        (b"[" + body() + b"," + body(trace_id="abc") + b"]", r"trace_id\[1\] must be"),
        (b"[" + b",".join([body()] * (MOST + 1)) + b"]", "at most 1000"),
    ],
)
def test_what_cannot_be_understood_is_refused_with_what_to_send(raw: bytes, told: str) -> None:
    with pytest.raises(PermanentError, match=told):
        read(raw)


def test_the_same_key_is_the_same_feedback_whatever_is_said_under_it() -> None:
    once, again, other = (of(body(value=value), key) for value, key in ((1, "k"), (-1, "k"), (1, "k2")))
    assert once.id == again.id != other.id


def test_without_a_key_the_same_words_about_the_same_thing_are_the_same_feedback() -> None:
    said: dict[str, Any] = {"value": -1, "author": "ann", "comment": "wrong"}
    assert of(body(**said)).id == of(body(**said)).id
    others: list[dict[str, Any]] = [{"value": 1}, {"author": "bob"}, {"comment": "late"}, {"run_id": "cd" * 16}]
    ids = {of(body(**(said | other))).id for other in others}
    assert len(ids | {of(body(**said)).id}) == len(others) + 1


def test_a_key_is_one_projects_own() -> None:
    (said,) = read(body())
    assert fact(said, "one", TRACE, "", "k", 7).id != fact(said, "other", TRACE, "", "k", 7).id
