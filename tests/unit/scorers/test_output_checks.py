"""Output checks: what an answer must be like, and when nobody can tell."""

from typing import Any

import pytest
from pydantic import ValidationError
from run_builders import a_call, a_failure, a_model_step, a_run, a_wish

from pipeline.model.result import Outcome, Result
from pipeline.model.run import Ended, Run
from pipeline.scorers.output import OutputSettings, output_check

PASS, FAIL, UNKNOWN = Outcome.PASS, Outcome.FAIL, Outcome.INSUFFICIENT_EVIDENCE


def score(rule: dict[str, Any], run: Run) -> Result | None:
    return output_check(OutputSettings.model_validate({"name": "mine", **rule})).score(run)


def outcome(rule: dict[str, Any], answer: str, *calls: Any, **fields: Any) -> Outcome | None:
    result = score(rule, a_run(*calls, answer=answer, **fields))
    assert result is not None
    return result.outcome


FENCED = '```json\n{"status": "done", "order": {"id": "A-1", "lines": [{"price": 4.5}]}}\n```'
BARE = '{"status": "done", "order": null}'
SCHEMA = {"type": "object", "required": ["status"], "properties": {"status": {"enum": ["done", "refused"]}}}


@pytest.mark.parametrize(
    ("rule", "answer", "expected"),
    [
        ({"json": "strict"}, BARE, PASS),
        ({"json": "strict"}, "42", PASS),
        ({"json": "strict"}, FENCED, FAIL),
        ({"json": "fenced"}, FENCED, PASS),
        ({"json": "fenced"}, "Here you are: {}", FAIL),
        ({"json": "strict"}, "NaN", FAIL),
        ({"json": "strict"}, "[" * 100_000, FAIL),
        ({"schema": SCHEMA}, BARE, PASS),
        ({"schema": SCHEMA}, FENCED, PASS),
        ({"schema": SCHEMA}, '{"status": "perhaps"}', FAIL),
        ({"schema": SCHEMA}, "Done.", FAIL),
        ({"schema": {"multipleOf": 0.01}}, "0.07", PASS),
        ({"schema": {"$ref": "http://127.0.0.1:9/schema"}}, "1", UNKNOWN),
        ({"fields": ["status", "order.id"]}, FENCED, PASS),
        ({"fields": ["order.lines.0.price"]}, FENCED, PASS),
        ({"fields": ["order.lines.1.price"]}, FENCED, FAIL),
        ({"fields": ["status", "order"]}, BARE, FAIL),
        ({"fields": ["status"]}, "[]", FAIL),
        ({"banned": ["guaranteed"]}, "It is not GUARANTEED.", FAIL),
        ({"banned": ["guaranteed"]}, "It is unguaranteed.", PASS),
        ({"banned": ["100 % safe"]}, "This is 100 %\n safe", FAIL),
        ({"banned": ["straße"]}, "STRASSE 1", FAIL),
        ({"banned": ["a.c"]}, "abc", PASS),
        ({"matches": "R-[0-9]+"}, "Your refund is R-77.", PASS),
        ({"matches": "^R-[0-9]+$"}, "Your refund is R-77.", FAIL),
        ({"language": "de"}, "Ihre Erstattung ist erfolgt.", PASS),
        ({"language": "en"}, "Ihre Erstattung ist erfolgt.", FAIL),
        ({"language": "en"}, "Done.", UNKNOWN),
        ({"no_secret": True}, "Your key is [redacted:github].", FAIL),
        ({"no_secret": True}, "Write to [redacted:email].", PASS),
    ],
)
def test_what_holds_and_what_does_not(rule: dict[str, Any], answer: str, expected: Outcome) -> None:
    assert outcome(rule, answer) is expected


ORDER = a_call("lookup", result='{"total": 1234.5, "paid": "1,000"}')


@pytest.mark.parametrize(
    ("amount", "answer", "expected"),
    [
        ({"after": "$"}, "You get $1,234.50 back.", PASS),
        ({"after": "$"}, "You get $1234.5.", PASS),
        ({"after": "$"}, "You get $1,234.51 back.", FAIL),
        ({"after": "$"}, "You get $1,234.50, and $3 more.", FAIL),
        ({"after": "$"}, "You get 1,234.50 back.", FAIL),
        ({"after": "usd"}, "You get USD 1234.50", PASS),
        ({"after": "€", "decimal_mark": ","}, "Sie erhalten €1.234,50.", PASS),
        ({"after": "€"}, "Sie erhalten €12,34.", FAIL),
        ({"field": "amount"}, '{"amount": "1234.50"}', PASS),
        ({"field": "amount"}, '{"amount": 1234.4999}', PASS),
        ({"field": "amount", "within": 0}, '{"amount": 1234.4999}', FAIL),
        ({"field": "amount"}, '{"amount": null}', FAIL),
        ({"field": "amount"}, "$1234.50", FAIL),
    ],
)
def test_an_amount_is_compared_as_a_decimal(amount: dict[str, Any], answer: str, expected: Outcome) -> None:
    equals = {"tool": "lookup", "field": "total"}
    assert outcome({"amount": {**amount, "equals": equals}}, answer, ORDER) is expected


@pytest.mark.parametrize(
    ("calls", "word"),
    [
        ((), "results_not_captured"),
        ((a_failure("lookup"),), "results_not_captured"),
        ((a_wish("lookup"),), "execution_not_captured"),
        ((a_call("lookup", result=None),), "results_not_captured"),
        ((a_call("lookup", result="out of stock"),), "results_not_comparable"),
        ((a_call("lookup", result='{"total": "a lot"}'),), "results_not_comparable"),
    ],
)
def test_an_amount_without_its_source_is_never_filled_from_the_answer(calls: Any, word: str) -> None:
    rule = {"amount": {"after": "$", "equals": {"tool": "lookup", "field": "total"}}}
    result = score(rule, a_run(*calls, answer="You get $5."))
    assert result is not None
    assert (result.outcome, result.value) == (UNKNOWN, None)
    assert result.reason.startswith(f"{word}: ")


def test_the_last_success_of_the_tool_counts_and_a_later_failure_does_not() -> None:
    rule = {"amount": {"after": "$", "equals": {"tool": "lookup"}}}
    calls = (a_call("lookup", result="1"), a_call("lookup", result="2.50"), a_failure("lookup"))
    assert outcome(rule, "$2.50", *calls) is PASS


@pytest.mark.parametrize(
    "rule", [{"json": "strict"}, {"fields": ["a"]}, {"banned": ["x"]}, {"matches": "x"}, {"no_secret": True}]
)
def test_in_a_text_that_was_cut_absence_proves_nothing(rule: dict[str, Any]) -> None:
    result = score(rule, a_run(answer='{"a": [1, 2', flags=("truncated",)))
    assert result is not None
    assert result.reason.startswith("answer_not_captured: ")


def test_what_stands_in_a_text_that_was_cut_stands_there() -> None:
    assert outcome({"banned": ["guaranteed"]}, "It is guaranteed to", flags=("truncated",)) is FAIL


def test_without_an_answer_there_is_nothing_to_check_and_one_that_nobody_captured_is_unknown() -> None:
    assert score({"json": "strict"}, a_run(answer=None, ended=Ended.ERROR)) is None
    assert score({"json": "strict"}, a_run(answer=" ")) is None
    result = score({"json": "strict"}, a_run(answer=None, ended=Ended.SILENCE, steps=(a_model_step("no_content"),)))
    assert result is not None
    assert result.outcome is UNKNOWN


def test_what_gates_by_default() -> None:
    def gates(**written: Any) -> bool:
        return output_check(OutputSettings.model_validate({"name": "mine", **written})).gates

    assert gates(json="strict")
    assert not gates(json="strict", gate=False)
    assert not gates(language="de")
    assert gates(language="de", gate=True)


def test_the_contract_changes_with_the_rule_and_not_with_the_gate() -> None:
    def contract(**written: Any) -> str:
        return output_check(OutputSettings.model_validate({"name": "mine", **written})).contract

    assert contract(banned=["x"]) == contract(banned=["x"], gate=False)
    assert len({contract(banned=["x"]), contract(banned=["y"]), contract(json="strict"), contract(json="fenced")}) == 4


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ({}, "check mine holds 0 rules; write exactly one of json, schema, fields, amount, matches, banned, language, no_secret"),
        ({"json": "strict", "banned": ["x"]}, "check mine holds 2 rules"),
        ({"schema": {"type": "objekt"}}, "this is no JSON Schema"),
        ({"matches": "(?=x)"}, "no pattern that RE2 reads"),
        ({"banned": [" "]}, "Value error, a banned phrase is blank; write the words that must not be there ["),
        ({"language": "german"}, "write a code of ISO 639-1, such as en, de or zh"),
        ({"amount": {"equals": {"tool": "t"}}}, "write exactly one of after, such as `after: $`, and field"),
        ({"amount": {"after": "$", "field": "x", "equals": {"tool": "t"}}}, "write exactly one of after"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(written: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as caught:
        OutputSettings.model_validate({"name": "mine", **written})
    assert told in str(caught.value)
