"""What a judge's model may reply, and what becomes of it (reliability H11); the table is in judge_replies."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_builders import Bench, a_request_to_judge, a_verdict, refunded
from judge_replies.rows import ACCEPTED, ANSWERS, FORMS, READ, SCORE, UNDECIDED, UNQUOTED, UNREADABLE, Form, Row
from judge_replies.table import heard, main

from pipeline.config.rubrics import load
from pipeline.judges.question import Question
from pipeline.judges.quote import found
from pipeline.judges.reply import Malformed, Parsed, parse
from pipeline.judges.scripted import Canned
from pipeline.judges.tally import Why
from pipeline.model.result import Outcome

SCALE = (1, 5)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
async def test_what_the_table_says_becomes_of_every_reply(form: Form) -> None:
    for row, judgment, became, calls in await heard(form, every=9):
        assert (became, calls) == (row.becomes, row.calls), f"{row.words}: {judgment}"


def test_the_table_is_printed_and_fails_where_something_else_became_of_a_reply(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    some = [Row("bare", Canned(text=SCORE.said()), ACCEPTED, 1), Row("4/5", Canned(text="4/5"), ACCEPTED, 1)]
    monkeypatch.setattr("judge_replies.table.FORMS", (SCORE,))
    monkeypatch.setattr("judge_replies.table.rows", lambda _form, _every: some)
    assert main() == 1
    printed = capsys.readouterr().out
    assert "1 OK" in printed
    assert "WRONG: malformed, 2 calls" in printed


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
@pytest.mark.parametrize("words", READ)
def test_one_verdict_is_read_wherever_it_stands(words: str, form: Form) -> None:
    assert form.parse(READ[words](form)) == Parsed(form.score, "Fine.", "42.50")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
@pytest.mark.parametrize("words", UNREADABLE)
def test_what_is_not_one_verdict_is_malformed(words: str, form: Form) -> None:
    assert isinstance(form.parse(UNREADABLE[words](form)), Malformed)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
@pytest.mark.parametrize("words", ANSWERS)
def test_what_is_no_answer_is_malformed_and_said(words: str, form: Form) -> None:
    said = form.parse(form.written(ANSWERS[words]))
    assert isinstance(said, Malformed)
    assert len(said.reason) < 120


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
@pytest.mark.parametrize("words", UNDECIDED)
def test_unknown_needs_no_evidence(words: str, form: Form) -> None:
    said = form.parse(UNDECIDED[words](form))
    assert isinstance(said, Parsed)
    assert said.score is None


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
@pytest.mark.parametrize("words", UNQUOTED)
def test_a_reply_whose_quote_proves_nothing_can_be_read(words: str, form: Form) -> None:
    assert isinstance(form.parse(UNQUOTED[words](form)), Parsed), "it is the quote that is wrong"


@pytest.mark.parametrize("score", range(1, 6))
def test_every_score_of_the_scale_is_read(score: int) -> None:
    assert parse(a_verdict(score, "Fine.", "42.50"), SCALE) == Parsed(score, "Fine.", "42.50")


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
def test_a_reply_cut_anywhere_is_malformed(form: Form) -> None:
    assert all(isinstance(form.parse(form.said()[:cut]), Malformed) for cut in range(len(form.said())))


def test_half_a_character_can_be_stored() -> None:
    said = parse('{"score": 4, "reason": "\\ud83d", "evidence": "\\ud83d"}', SCALE)
    assert isinstance(said, Parsed)
    assert (said.reason + said.evidence).encode()


async def test_what_a_reply_says_against_itself_is_flagged_and_one_rule_decides() -> None:
    async with Bench([Canned(text=READ["with a key that says the opposite"](SCORE)), Canned(text=SCORE.said())]) as bench:
        against, plain = await bench.judged("tone"), await bench.judged("tone", refunded(request="Another one."))
    assert (against.outcome, against.score) == (plain.outcome, plain.score) == (Outcome.PASS, 4.0)
    assert "contradicts_itself" in against.flags
    assert "contradicts_itself" not in plain.flags


# --- any reply

KEYS = ("score", "verdict", "reason", "evidence", "pass")
values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["PASS", "FAIL", "Unknown", 1, 4, 5, "42.50 USD", "Please refund"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=5).map(json.dumps)
pieces = st.sampled_from(
    ['{"score": 5', '"reason": "r"', '"evidence": "42.50"', "{", "}", ",", ":", '"', "```", "<think>", "Unknown", "NaN", "5", " ", "\ufeff"]
)  # fmt: skip
replies = st.one_of(
    st.text(),
    objects,
    st.lists(st.one_of(objects, pieces, st.text(max_size=5)), max_size=4).map("".join),
    st.lists(pieces).map("".join),
)


async def _question(form: Form) -> Question:
    async with Bench((), load(form.rubric)) as bench:
        contract = bench.judge.contracts[form.dimension]
        return Question.of(a_request_to_judge(refunded(), bench.judge), load(form.rubric), contract)


@pytest.fixture(params=FORMS, ids=lambda form: form.key, scope="module")
def question(request: pytest.FixtureRequest) -> Question:
    return asyncio.run(_question(request.param))


@given(reply=replies)
def test_any_reply_is_a_score_on_the_scale_with_its_quote_or_no_number_and_a_reason(question: Question, reply: str) -> None:
    grade = question.grade(reply)
    low, high = question.rubric.scale_low, question.rubric.scale_high
    if grade.outcome.decided:
        assert grade.score is not None
        assert low <= grade.score <= high
        assert grade.score.is_integer()
        assert found(grade.quote, question.document, observation_only=False)
    else:
        assert grade.score is None
        assert grade.reason.split(":")[0] in (Why.MALFORMED, Why.UNKNOWN, Why.QUOTE_NOT_FOUND)
        assert (grade.outcome is Outcome.INSUFFICIENT_EVIDENCE) == grade.reason.startswith(Why.UNKNOWN)


@given(st.integers(1, 5), st.integers(1, 5), st.text(alphabet="abc{}\"' \n"))
def test_no_text_around_two_different_scores_makes_one_of_them_count(one: int, other: int, between: str) -> None:
    said = parse(a_verdict(one) + between + a_verdict(other), SCALE)
    assert isinstance(said, Malformed) or one == other
