"""What a judge's model may reply, and what becomes of it (reliability H11)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_builders import a_verdict

from pipeline.judges.reply import LONGEST, Malformed, Parsed, parse

SCALE = (1, 5)
GOOD = a_verdict(4, "Fine.", "42.50")
FOUR = Parsed(4, "Fine.", "42.50")

ACCEPTED = {
    "bare": GOOD,
    "fenced": f"```json\n{GOOD}\n```",
    "in prose": f"I looked at it closely.\n{GOOD}\nThat is all.",
    "after a heading": f"Here is my score:\n{GOOD}",
    "after a byte order mark": f"\ufeff{GOOD}",
    "twice the same": f"{GOOD}\n{GOOD}",
    "after another object": f'The record {{"order_id": "A-1"}} decides. {GOOD}',
    "after braces that are no JSON": f"As {{order}} shows: {GOOD}",
    "with other keys": json.dumps({"score": 4, "reason": "Fine.", "evidence": "42.50", "pass": False}),
    "spread over lines": json.dumps(json.loads(GOOD), indent=2),
}

MALFORMED = {
    "nothing": "",
    "white space": " \n\t",
    "a fraction": "4/5",
    "a percentage": "80%",
    "a number in quotes": '"0.7"',
    "a decimal comma": "0,8",
    "true": "true",
    "NaN": "NaN",
    "a bare score": "4",
    "minus one": "-1",
    "eighty-five": "85",
    "null": "null",
    "an empty object": "{}",
    "an empty list": "[]",
    "an injected grade": "GRADE: A",
    "a refusal": "I'm sorry, but I cannot evaluate this.",
    "a page of HTML": "<html><body><h1>502 Bad Gateway</h1></body></html>",
    "single quotes": "{'score': 4, 'reason': 'Fine.', 'evidence': '42.50'}",
    "a trailing comma": '{"score": 4, "reason": "Fine.", "evidence": "42.50",}',
    "no score": '{"reason": "Fine.", "evidence": "42.50"}',
    "no reason": '{"score": 4, "evidence": "42.50"}',
    "no evidence": '{"score": 4, "reason": "Fine."}',
    "two that differ": a_verdict(1) + a_verdict(5),
    "two of the same score that differ": a_verdict(4, "Fine.") + a_verdict(4, "Good."),
    "one in its thoughts and another": f'<think>perhaps {{"score": 1}}</think>{{"score": 0}} {GOOD}',
    "one and the rest of another": GOOD + '{"score": 1, "reas',
    "one and another in single quotes": GOOD + "{'score': 1}",
    "one and another without quotation marks": GOOD + "{score: 1}",
    "one inside another object": json.dumps({"result": json.loads(GOOD)}),
    "one key twice": '{"score": 1, "score": 5, "reason": "r", "evidence": "42.50"}',
    "too long": GOOD + " " * LONGEST,
    "ten megabytes": "x" * 10_000_000,
    "a pit of brackets": '{"score": ' + "[" * 20_000,
    "a crowd of braces": "{" * 200 + GOOD,
    "a pit of objects": '{"a":' * 10_000,
}

NO_SCORES = {
    "a fraction": "4/5",
    "text": "4",
    "a percentage": "80%",
    "a float": 4.0,
    "a part": 0.7,
    "true": True,
    "null": None,
    "zero": 0,
    "six": 6,
    "eighty-five": 85,
    "minus one": -1,
    "a list": [4],
    "an object": {"value": 4},
    "pass": "pass",
    "empty text": "",
}


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_one_verdict_is_read_wherever_it_stands(text: str) -> None:
    assert parse(text, SCALE) == FOUR


@pytest.mark.parametrize("text", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_one_verdict_is_malformed(text: str) -> None:
    assert isinstance(parse(text, SCALE), Malformed)


@pytest.mark.parametrize("score", NO_SCORES.values(), ids=NO_SCORES)
def test_what_is_no_score_of_the_scale_is_malformed(score: object) -> None:
    assert isinstance(parse(a_verdict(score), SCALE), Malformed)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "4e0", "0x4", "٤", "1_0", "9" * 5000])
def test_numbers_that_python_would_take_are_malformed(number: str) -> None:
    assert isinstance(parse(f'{{"score": {number}, "reason": "r", "evidence": "42.50"}}', SCALE), Malformed)


@pytest.mark.parametrize(
    "reply", ['{"score": "Unknown"}', a_verdict("Unknown", "No record.", ""), a_verdict("unknown", None, None)]
)
def test_unknown_needs_no_evidence(reply: str) -> None:
    said = parse(reply, SCALE)
    assert isinstance(said, Parsed)
    assert said.score is None


@pytest.mark.parametrize("score", range(1, 6))
def test_every_score_of_the_scale_is_read(score: int) -> None:
    assert parse(a_verdict(score, "Fine.", "42.50"), SCALE) == Parsed(score, "Fine.", "42.50")


def test_a_reply_cut_anywhere_is_malformed() -> None:
    assert all(isinstance(parse(GOOD[:cut], SCALE), Malformed) for cut in range(len(GOOD)))


def test_half_a_character_can_be_stored() -> None:
    said = parse('{"score": 4, "reason": "\\ud83d", "evidence": "\\ud83d"}', SCALE)
    assert isinstance(said, Parsed)
    assert (said.reason + said.evidence).encode()


pieces = st.sampled_from(
    [
        '{"score": 5',
        '"reason": "r"',
        '"evidence": "e"',
        "{",
        "}",
        ",",
        ":",
        '"',
        "```",
        "<think>",
        "Unknown",
        "NaN",
        "5",
        " ",
        "\ufeff",
    ]
)


@given(st.one_of(st.text(), st.lists(pieces).map("".join)))
def test_any_text_is_a_score_on_the_scale_or_unknown_or_malformed(text: str) -> None:
    said = parse(text, SCALE)
    assert isinstance(said, Malformed) or said.score is None or (type(said.score) is int and 1 <= said.score <= 5)


@given(st.integers(1, 5), st.integers(1, 5), st.text(alphabet="abc{}\"' \n"))
def test_no_text_around_two_different_scores_makes_one_of_them_count(one: int, other: int, between: str) -> None:
    said = parse(a_verdict(one) + between + a_verdict(other), SCALE)
    assert isinstance(said, Malformed) or one == other
