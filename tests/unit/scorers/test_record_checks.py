"""What a record source says of a call's effect, held against the call: never filled from what the agent says."""

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from builders import T0
from pydantic import ValidationError
from run_builders import a_call, a_failure, a_model_step, a_run, a_wish

from pipeline.errors import ConfigurationError
from pipeline.model import ids
from pipeline.model.evidence import Evidence, Found, Question, answered, seal
from pipeline.model.result import Outcome, Result
from pipeline.model.run import BACKFILL, Cohort, Place, Run
from pipeline.model.step import ToolCall
from pipeline.model.time import SECOND, minute_of
from pipeline.scorers.check import Check, Missing
from pipeline.scorers.reading import Source, calls_hash, quoted
from pipeline.scorers.record import record_check
from pipeline.scorers.record_settings import CountSettings, RecordSettings

SOURCES = {"payments": Source("payments", {"kind": "http", "url": "https://p/{order}"}, frozenset({"order"}))}
WRITTEN: dict[str, Any] = {
    "name": "refunded",
    "source": "payments",
    "each": "refund",
    "key": {"order": "arguments.order_id"},
    "identity": {"order_id": "arguments.order_id"},
    "amount": {"field": "amount", "equals": "arguments.amount"},
    "state": {"state": {"in": ["committed", "settled"]}},
}
FAILED = "failed"


def the_check(**changes: Any) -> Check:
    return record_check(RecordSettings.model_validate(WRITTEN | changes), SOURCES)


def refund(order: Any = "A-1", amount: Any = 12.5, **fields: Any) -> ToolCall:
    return a_call("refund", {"order_id": order, "amount": amount}, **fields)


def record(order: Any = "A-1", amount: Any = "12.50", state: str = "committed", **fields: Any) -> dict[str, Any]:
    return {"order_id": order, "amount": amount, "state": state} | fields


def answer(question: Question, said: Any) -> Evidence:
    if said == FAILED:
        return answered(question, Found.FAILED, T0, error="no answer within 5 s")
    if said is None:
        return answered(question, Found.ABSENT, T0)
    return answered(question, Found.RECORD, T0, body=json.dumps(said))


def judged(run: Run, *said: Any, check: Check | None = None) -> Result | None:
    """What the check says where the source answers its questions so, in order."""
    check = check or the_check()
    questions = check.questions(run)
    assert len(questions) == len(said)
    return check.score(run, {one.id: answer(one, what) for one, what in zip(questions, said, strict=True)})


def outcome(run: Run, *said: Any, check: Check | None = None) -> tuple[Outcome | None, str]:
    result = judged(run, *said, check=check)
    assert result is not None
    return result.outcome, result.reason


def test_the_effect_is_there() -> None:
    result = judged(a_run(refund()), record())
    assert result is not None
    assert (result.outcome, result.value, result.reason) == (Outcome.PASS, 1.0, "")
    assert result.evidence == (
        'payments order=A-1, read 2026-09-21T14:13:20Z: {"order_id": "A-1", "amount": "12.50", "state": "committed"}'
    )


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (None, "payments has no records of order_id A-1, and 1 call of refund succeeded"),
        ([], "payments has no records of order_id A-1, and 1 call of refund succeeded"),
        ([record("B-7")], "payments has no records of order_id A-1, and 1 call of refund succeeded"),
        ([record(), record()], "payments has 2 records of order_id A-1, and 1 call of refund succeeded"),
        (record(amount="12.51"), "payments says amount 12.51, the call 12.5"),
        (record(amount=12.494), "payments says amount 12.494, the call 12.5"),
        (record(state="pending"), "payments says state pending"),
    ],
    ids=["removed", "an empty list", "moved to another order", "doubled", "a cent more", "less", "another state"],
)
def test_an_effect_that_is_not_what_the_call_asked_for_fails(said: Any, reason: str) -> None:
    assert outcome(a_run(refund()), said) == (Outcome.FAIL, reason)


def test_amounts_are_equal_to_the_cent_and_compared_as_decimals() -> None:
    for amount in ("12.50", 12.5, "12.5", "12.504", "12.505", "12.495"):
        assert outcome(a_run(refund()), record(amount=amount))[0] is Outcome.PASS
    for amount in ("12.5051", "12.4949"):
        assert outcome(a_run(refund()), record(amount=amount))[0] is Outcome.FAIL
    longest = "1" + "0" * 30
    assert outcome(a_run(refund(amount=longest)), record(amount=longest))[0] is Outcome.PASS
    exact = the_check(amount={"field": "amount", "equals": "arguments.amount", "within": 0})
    assert outcome(a_run(refund(amount=0.3)), record(amount=0.3), check=exact)[0] is Outcome.PASS
    assert outcome(a_run(refund(amount=0.3)), record(amount="0.30000000000000004"), check=exact)[0] is Outcome.FAIL


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (FAILED, Missing.RECORD_NOT_READ),
        ({"order_id": "A-1", "state": "committed"}, Missing.RECORD_NOT_COMPARABLE),
        (record(amount="twelve"), Missing.RECORD_NOT_COMPARABLE),
        (record(amount="1" * 40), Missing.RECORD_NOT_COMPARABLE),
        ({"amount": 12.5, "state": "committed"}, Missing.RECORD_NOT_COMPARABLE),
        ({"order_id": "A-1", "amount": 12.5}, Missing.RECORD_NOT_COMPARABLE),
        (record("[redacted:email]"), Missing.RECORD_NOT_COMPARABLE),
        (record(state="[redacted:card]"), Missing.RECORD_NOT_COMPARABLE),
        ("refunded", Missing.RECORD_NOT_COMPARABLE),
        ([record(), 3], Missing.RECORD_NOT_COMPARABLE),
    ],
)
def test_a_source_that_is_down_or_answers_badly_proves_nothing(said: Any, word: Missing) -> None:
    found, reason = outcome(a_run(refund(), answer="The refund of 12.50 for order A-1 is committed."), said)
    assert found is Outcome.INSUFFICIENT_EVIDENCE
    assert reason.startswith(f"{word}: payments order=A-1")


def test_a_fail_and_what_cannot_be_compared_show_what_was_read() -> None:
    for said, word in (
        (record(state="pending"), "payments says state pending"),
        ("x", "record_not_comparable: payments order=A-1"),
    ):
        result = judged(a_run(refund()), said)
        assert result is not None
        assert (result.reason, result.evidence) == (word, f"payments order=A-1, read 2026-09-21T14:13:20Z: {json.dumps(said)}")


def test_evidence_of_a_pass_is_all_that_was_read_each_once_and_no_record_is_something() -> None:
    none = the_check(count={"exactly": 0}, amount=None, state={})
    result = judged(a_run(refund(), refund("A-2"), refund()), None, None, check=none)
    assert result is not None
    assert result.evidence == (
        "payments order=A-1, read 2026-09-21T14:13:20Z: no such record\n"
        "payments order=A-2, read 2026-09-21T14:13:20Z: no such record"
    )


@pytest.mark.parametrize(("length", "shown"), [(400, '"' + "x" * 398 + '"'), (401, '"' + "x" * 398 + "…")])
def test_a_long_record_is_quoted_from_its_beginning_and_times_to_the_second(length: int, shown: str) -> None:
    (question,) = the_check().questions(a_run(refund()))
    read = answered(question, Found.RECORD, T0 + SECOND // 2, body='"' + "x" * (length - 2) + '"')
    assert quoted(read) == f"payments order=A-1, read 2026-09-21T14:13:20Z: {shown}"


def test_what_was_never_read_is_not_read() -> None:
    result = the_check().score(a_run(refund()))
    assert result is not None
    assert (result.outcome, result.reason) == (Outcome.INSUFFICIENT_EVIDENCE, "record_not_read: payments order=A-1 was not read")


def test_evidence_of_a_failed_read_says_when_and_why() -> None:
    result = judged(a_run(refund()), FAILED)
    assert result is not None
    assert result.evidence == "payments order=A-1, read 2026-09-21T14:13:20Z: not read: no answer within 5 s"


def test_two_refunds_of_one_order_are_two_records() -> None:
    run = a_run(refund(amount=10), refund(amount=2.5))
    assert outcome(run, [record(amount=2.5), record(amount=10)]) == (Outcome.PASS, "")
    assert outcome(run, [record(amount=10)]) == (
        Outcome.FAIL,
        "payments has 1 record of order_id A-1, and 2 calls of refund succeeded",
    )
    assert outcome(run, [record(amount=10), record(amount=10)]) == (Outcome.FAIL, "payments says amount 10, 10, the call 2.5")
    assert outcome(run, [record(amount=2.5), record(amount=2.5)])[0] is Outcome.FAIL


def test_a_source_may_be_asked_about_a_customer_and_answer_about_all_orders() -> None:
    sources = {"payments": Source("payments", {}, frozenset({"customer"}))}
    by_customer = record_check(
        RecordSettings.model_validate(WRITTEN | {"key": {"customer": "arguments.customer"}, "records": "page.refunds"}), sources
    )
    calls = [a_call("refund", {"order_id": order, "customer": 7, "amount": 5}) for order in ("A-1", "A-2")]
    run = a_run(*calls)
    page = [record("A-1", 5), record("A-2", 5), record("A-0", 99, "failed")]
    assert outcome(run, {"page": {"refunds": page}}, check=by_customer) == (Outcome.PASS, "")
    missing = outcome(run, {"page": {"refunds": page[:1]}}, check=by_customer)
    assert missing == (Outcome.FAIL, "payments has no records of order_id A-2, and 1 call of refund succeeded")
    assert outcome(run, {"page": {"refunds": None}}, check=by_customer)[0] is Outcome.FAIL
    assert outcome(run, {"page": {}}, check=by_customer)[0] is Outcome.INSUFFICIENT_EVIDENCE


def test_counts_other_than_one_for_each_call() -> None:
    at_least = the_check(count={"at_least": 1})
    assert outcome(a_run(refund()), [record(), record()], check=at_least)[0] is Outcome.PASS
    assert outcome(a_run(refund()), [], check=at_least) == (
        Outcome.FAIL,
        "payments has no records of order_id A-1, and it must be at least 1",
    )
    none = the_check(count={"exactly": 0}, amount=None, state={})
    assert outcome(a_run(refund()), None, check=none)[0] is Outcome.PASS
    assert outcome(a_run(refund()), record(), check=none)[0] is Outcome.FAIL
    assert outcome(a_run(refund()), None, check=the_check(count={"at_most": 1}))[0] is Outcome.PASS, "no record has an amount"


@pytest.mark.parametrize(
    ("written", "allowed"),
    [({"exactly": 2}, {2}), ({"at_least": 2}, {2, 3}), ({"at_most": 2}, {0, 1, 2}), ({"at_least": 1, "at_most": 2}, {1, 2})],
)
def test_a_count_allows_its_own_ends(written: dict[str, int], allowed: set[int]) -> None:
    settings = CountSettings.model_validate(written)
    assert {count for count in range(4) if settings.allows(count)} == allowed


def test_without_an_identity_every_record_is_the_calls() -> None:
    anybody = the_check(identity={})
    assert outcome(a_run(refund()), record("B-7"), check=anybody) == (Outcome.PASS, "")
    assert outcome(a_run(refund()), None, check=anybody) == (
        Outcome.FAIL,
        "payments has no records, and 1 call of refund succeeded",
    )
    only_there = the_check(identity={}, amount=None, state={})
    assert outcome(a_run(refund()), "refunded", check=only_there)[0] is Outcome.INSUFFICIENT_EVIDENCE, "a word is no record"


def test_an_identity_may_be_of_several_fields_and_what_is_known_of_one_call_is_enough() -> None:
    sources = {"payments": Source("payments", {}, frozenset({"customer"}))}
    changes = {
        "key": {"customer": "arguments.customer"},
        "identity": {"order_id": "arguments.order_id", "of": "arguments.customer"},
    }
    check = record_check(RecordSettings.model_validate(WRITTEN | changes | {"amount": None}), sources)
    calls = [a_call("refund", {"customer": 7, **more}) for more in ({}, {"order_id": "A-1"})]
    found = outcome(a_run(*calls), [record("A-2", of=7)], check=check)
    assert found == (Outcome.FAIL, "payments has no records of order_id A-1, of 7, and 1 call of refund succeeded")
    hidden = a_run(a_call("refund", {"customer": 7, "order_id": "[redacted:id]"}))
    assert outcome(hidden, [record("A-2", of=7)], check=check) == (
        Outcome.INSUFFICIENT_EVIDENCE,
        "arguments_not_comparable: payments customer=7",
    )


def test_no_two_alike() -> None:
    unique = the_check(count={"at_least": 1}, unique=["reference"])
    two = [record(reference="R-1"), record(reference="R-2")]
    assert outcome(a_run(refund()), two, check=unique)[0] is Outcome.PASS
    assert outcome(a_run(refund()), [*two, record(reference="R-1")], check=unique) == (
        Outcome.FAIL,
        "payments has 2 records with reference R-1",
    )
    assert outcome(a_run(refund()), [record()], check=unique)[0] is Outcome.INSUFFICIENT_EVIDENCE
    both = the_check(count={"at_least": 1}, unique=["state", "reference"])
    assert outcome(a_run(refund()), two, check=both)[0] is Outcome.PASS
    assert outcome(a_run(refund()), [two[0], two[0]], check=both) == (
        Outcome.FAIL,
        "payments has 2 records with state committed, reference R-1",
    )


def test_one_known_violation_is_enough_whatever_else_was_not_read() -> None:
    run = a_run(refund("A-1"), refund("A-2"))
    assert outcome(run, FAILED, None)[0] is Outcome.FAIL
    assert outcome(run, FAILED, record("A-2"))[0] is Outcome.INSUFFICIENT_EVIDENCE
    assert outcome(run, record("A-1"), record("A-2"))[0] is Outcome.PASS
    states = the_check(state={"kind": {"equals": "full"}, "state": {"equals": "committed"}})
    assert outcome(a_run(refund()), record(state="pending"), check=states) == (Outcome.FAIL, "payments says state pending")


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (a_run(steps=(a_model_step("no_content"),)), "calls_not_captured: the models' content was not captured"),
        (a_run(a_wish("refund", {"order_id": "A-1"})), "execution_not_captured: call of refund"),
        (a_run(ToolCall("refund", raw_arguments='{"or', result="ok")), "arguments_not_captured: call of refund"),
        (a_run(a_call("refund", {"amount": 1})), "arguments_not_comparable: call of refund"),
        (a_run(refund([])), "arguments_not_comparable: call of refund"),
        (a_run(refund("")), "arguments_not_comparable: call of refund"),
        (a_run(refund("x" * 201)), "arguments_not_comparable: call of refund"),
        (a_run(refund(float("nan"))), "arguments_not_comparable: call of refund"),
        (a_run(refund("A\n1")), "arguments_not_comparable: call of refund"),
        (a_run(refund("[redacted:email]")), "arguments_not_comparable: call of refund"),
        (a_run(*(refund(str(number)) for number in range(21))), "too_many_reads: more than 20 records would have to be read"),
    ],
)
def test_what_cannot_be_asked_is_not_asked(run: Run, reason: str) -> None:
    check = the_check()
    assert check.questions(run) == ()
    result = check.score(run)
    assert result is not None
    assert (result.outcome, result.value, result.reason) == (Outcome.INSUFFICIENT_EVIDENCE, None, reason)


def test_as_many_records_as_may_be_read_are_read() -> None:
    orders = [f"A-{number}" for number in range(20)]
    assert outcome(a_run(*map(refund, orders)), *map(record, orders)) == (Outcome.PASS, "")


@pytest.mark.parametrize(
    "run",
    [
        a_run(),
        a_run(a_failure("refund", {"order_id": "A-1"})),
        a_run(a_call("other")),
        a_run(a_call("other"), a_wish("refund", {"order_id": "A-1"})),
    ],
)
def test_where_no_such_call_succeeded_there_is_nothing_to_check(run: Run) -> None:
    assert the_check().questions(run) == ()
    assert the_check().score(run) is None


def test_history_that_is_replayed_is_not_asked_about() -> None:
    run = a_run(refund(), place=Place(Cohort("support", environment=BACKFILL), minute_of(T0)))
    assert the_check().questions(run) == ()
    result = the_check().score(run)
    assert result is not None
    assert (result.outcome, result.reason) == (Outcome.INSUFFICIENT_EVIDENCE, "record_not_read: payments order=A-1 was not read")


def test_only_calls_that_meet_the_conditions_are_asked_about() -> None:
    check = the_check(where={"amount": {"greater_than": 100}})
    run = a_run(refund(amount=5), refund("A-2", amount=500))
    assert [json.loads(one.key) for one in check.questions(run)] == [{"order": "A-2"}]


def test_a_key_may_come_from_a_result() -> None:
    check = the_check(key={"order": "result.refund.id"})
    asked = check.questions(a_run(refund(result='{"refund": {"id": 42}}'), refund("A-2", result='{"refund": {"id": 42}}')))
    assert [json.loads(one.key) for one in asked] == [{"order": 42}]
    assert outcome(a_run(refund(result=None)), check=check)[1] == "results_not_captured: call of refund"
    assert outcome(a_run(refund(result="ok")), check=check)[1] == "results_not_comparable: call of refund"


@pytest.mark.parametrize(
    ("result", "key"),
    [
        ("R-7", '{"order": "R-7"}'),
        ('"R-7"', '{"order": "R-7"}'),
        ("42", '{"order": 42}'),
        ("42.50", '{"order": "42.50"}'),
        ("1e200", '{"order": "1E+200"}'),
        ("x" * 200, f'{{"order": "{"x" * 200}"}}'),
    ],
)
def test_a_result_that_is_the_value_itself_is_a_key(result: str, key: str) -> None:
    (asked,) = the_check(key={"order": "result"}).questions(a_run(refund(result=result)))
    assert asked.key == key


@pytest.mark.parametrize("result", ["1e201", "null", "[]", "x" * 201])
def test_what_no_source_can_be_asked_by_is_no_key(result: str) -> None:
    assert the_check(key={"order": "result"}).questions(a_run(refund(result=result))) == ()


def test_parameters_are_sorted_and_shown_one_after_the_other() -> None:
    sources = {"payments": Source("payments", {})}
    settings = RecordSettings.model_validate(WRITTEN | {"key": {"order": "arguments.order_id", "amount": "arguments.amount"}})
    check = record_check(settings, sources)
    (asked,) = check.questions(a_run(refund()))
    assert asked.key == '{"amount": 12.5, "order": "A-1"}'
    assert outcome(a_run(refund()), FAILED, check=check)[1] == (
        "record_not_read: payments amount=12.5, order=A-1: no answer within 5 s"
    )


def test_the_calls_of_a_run_are_named_by_tools_arguments_and_success_in_order() -> None:
    run = a_run(
        a_call("refund", {"b": Decimal("1.5"), "a": 1}, raw_arguments='{"b":1.5,"a":1}'),
        a_failure("mail", {}),
        ToolCall("cut", raw_arguments='{"a', result="ok"),
        a_wish("refund"),
    )
    said = '[["refund", {"a": 1, "b": "1.5"}, "", false], ["mail", {}, "", true], ["cut", null, "{\\"a", false]]'
    assert calls_hash(run) == ids.digest(16, said)
    assert len(calls_hash(run)) == 32


def test_a_question_is_the_same_until_the_calls_are_others() -> None:
    check = the_check()
    (one,) = check.questions(a_run(refund()))
    assert check.questions(a_run(refund(), answer="Something else.")) == (one,)
    (other,) = check.questions(a_run(refund(), refund()))
    assert (one.key, one.contract) == (other.key, other.contract)
    assert one.id != other.id, "a second call of the same order is a reason to look again"


def test_a_call_on_which_the_check_breaks_is_a_grader_error_of_it_alone() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    run = a_run(a_call("other", {"deep": deep}), refund())
    check = the_check()
    assert check.asks(run) == ()
    with pytest.raises(RecursionError):
        check.score(run)
    assert check.score(a_run(a_call("other", {"deep": deep}))) is None, "no call of the tool, nothing to name"


def test_the_contract_holds_the_source_and_the_rules() -> None:
    contracts = {
        the_check().contract,
        the_check(amount=None).contract,
        the_check(count={"at_least": 1}).contract,
        record_check(
            RecordSettings.model_validate(WRITTEN), {"payments": Source("payments", {"kind": "http", "url": "https://q/{order}"})}
        ).contract,
    }
    assert len(contracts) == 4
    assert the_check(gate=False).contract == the_check(safety=True).contract == the_check().contract
    assert [the_check(safety=safety).is_safety for safety in (False, True)] == [False, True]
    assert [the_check(**gate).gates for gate in ({}, {"gate": False})] == [True, False]


def test_evidence_is_named_by_all_that_it_says() -> None:
    (question,) = the_check().questions(a_run(refund()))
    read = answer(question, record())
    changes: Sequence[dict[str, Any]] = (
        {"body": "{}"},
        {"read_ns": T0 + 1},
        {"found": Found.ABSENT},
        {"key": "{}"},
        {"error": "x"},
    )
    sealed = {answered(question, Found.RECORD, T0, body=read.body).content_hash}
    sealed |= {seal(msgspec.structs.replace(read, **change)).content_hash for change in changes}
    assert len(sealed) == 1 + len(changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"key": {"order": "answer"}}, "is no place in a call; write arguments.NAME, result.NAME"),
        ({"identity": {"order_id": "arguments"}}, "is no place in a call"),
        ({"count": {}}, "the count is empty; write one of exactly, at_least, at_most"),
        ({"amount": {"field": "amount", "equals": "arguments.amount", "within": -1}}, "greater than or equal to 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        the_check(**changes)


def test_a_source_that_is_not_there_or_is_asked_otherwise_is_a_sentence() -> None:
    ours = {
        "payments": SOURCES["payments"],
        "ledger": Source("ledger", {}, frozenset({"id", "year"})),
        "all": Source("all", {}, frozenset()),
    }
    for changes, sources, sentence in (
        ({"source": "bank"}, ours, "no record source is called bank; the sources are: all, ledger, payments"),
        ({"source": "bank"}, {}, "no record source is called bank; the sources are: none; write it under records"),
        ({"source": "ledger"}, ours, "the parameters of ledger are id, year; write exactly these under key"),
        ({"source": "all"}, ours, "the parameters of all are none; write exactly these under key"),
        (
            {"key": {"order_id": "arguments.order_id"}},
            ours,
            "the parameters of payments are order; write exactly these under key",
        ),
    ):
        with pytest.raises(ConfigurationError) as refused:
            record_check(RecordSettings.model_validate(WRITTEN | changes), sources)
        assert str(refused.value) == sentence
