"""Argument hallucination: what a call was given that nobody had given the agent."""

import time
from datetime import date
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import msgspec
import pytest
from builders import T0
from hypothesis import given
from hypothesis import strategies as st
from run_builders import REFUND, a_call, a_failure, a_run, a_wish, named, ran

from pipeline.model.result import Outcome
from pipeline.model.run import Run
from pipeline.model.step import Message, Step, StepKind, ToolCall, ToolDefinition
from pipeline.model.time import SECOND
from pipeline.scorers.check import Finding
from pipeline.scorers.hallucination import argument_hallucination_rate, hallucination_check

LOOKUP = ToolDefinition("lookup", schema={"type": "object", "properties": {"order_id": {"type": "string", "default": "A-77"}}})


def told(request: str, *calls: ToolCall, **fields: Any) -> Run:
    """A run of which everything was captured, asked for by a user who said this."""
    steps = (
        Step(
            "b1",
            "a1",
            "chat",
            T0,
            T0 + SECOND,
            T0,
            kind=StepKind.MODEL,
            input=(Message("user", request),),
            output=(Message("assistant", "…"),),
        ),
    )
    return a_run(*calls, **({"request": request, "tools": (REFUND, LOOKUP), "steps": steps} | fields))


def rate(run: Run) -> float | None:
    """The share, None where it is not known; to be told from an absent check by :func:`finding`."""
    return finding(run).value


def finding(run: Run) -> Finding:
    found = argument_hallucination_rate(run)
    assert found is not None
    return found


def given_as(value: Any, text: str) -> float | None:
    return rate(told(text, a_call("lookup", {"value": value})))


def test_the_rate_is_values_that_nobody_gave_over_all_values_and_evidence_names_the_value_and_its_call() -> None:
    run = told(
        "Refund order 7, please.",
        a_call("refund", {"order_id": "7", "amount": 12.5, "notify": {"mail": ["ann@example.com", "7"]}}),
    )
    found = finding(run)
    assert (found.outcome, found.value, found.lower, found.upper) == (Outcome.FAIL, 0.5, 0.5, 0.5)
    assert found.reason == "2 of 4 values occur in nothing that the agent had been given"
    assert found.evidence.startswith("refund: amount = 12.5 in refund({")
    assert not hallucination_check().gates


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("A-1001", "order a-1001.", id="case"),
        pytest.param("Jane  Doe", "for jane\tdoe", id="spacing"),
        pytest.param("Zoe\u0308", "it is ZO\u00cb", id="NFC and case"),
        pytest.param("Straße", "STRASSE 5", id="folding that lengthens"),
        pytest.param("ann.lee@example.com", "<Ann.Lee@example.com>", id="an address"),
        pytest.param(42.5, "42.50 USD", id="numbers by value"),
        pytest.param("42.50", "42.5", id="a number that is a text"),
        pytest.param("42.0", "42 USD", id="decimals that say nothing"),
        pytest.param(7, "no. 007", id="zeros that say nothing"),
        pytest.param(1234.5, "1,234.50", id="thousands"),
        pytest.param(1234.5, "1.234,50", id="thousands elsewhere"),
        pytest.param(2.5, "[1.50,2.50]", id="one of a list"),
        pytest.param(-5, "minus 5", id="without its sign"),
        pytest.param(9007199254740993, "9007199254740993", id="a number that no float holds"),
        pytest.param("2026-11-30", "on 30 November 2026", id="a date by its day"),
        pytest.param("2026-11-30T09:00:00Z", "11/30/2026", id="a time of that day"),
        pytest.param("Nov 30, 2026", "30.11.2026", id="a date in words"),
        pytest.param("東京", "東京に行きたい", id="a script without spaces"),
        pytest.param("Mode: fast", '{"mode": "fast"}', id="whatever is between"),
    ],
)
def test_a_value_that_was_given_in_another_spelling_was_given(value: Any, text: str) -> None:
    assert given_as(value, text) == 0.0
    assert given_as(value, "nothing of it") == 1.0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("A-1001", "A-10011 and B-1001", id="a part of another id"),
        pytest.param("0042", "42", id="an id is no number"),
        pytest.param(42, "142 or 4.2", id="a part of another number"),
        pytest.param(100, "10 or 1", id="a number with zeros at its end"),
        pytest.param(9007199254740993, "9007199254740992", id="the next one"),
        pytest.param("2026-11-30", "2026-11-03", id="another day"),
        pytest.param("Jane Doe", "Doe, Jane", id="other order"),
    ],
)
def test_a_value_like_one_that_was_given_was_not(value: Any, text: str) -> None:
    assert given_as(value, text) == 1.0


def test_values_of_every_kind_are_found_in_one_text() -> None:
    values = ["A-1001", 42.5, 17, "2026-11-30", "2026-12-24", "Jane van Doe"]
    text = "Jane van Doe: A-1001 costs 42.50, 17 of them, from 30 November 2026 to 24.12.2026"
    assert given_as(values, text) == 0.0


@pytest.mark.parametrize(("length", "share"), [(48, 0.0), (49, 1.0)])
def test_a_text_is_a_date_up_to_a_length(length: int, share: float) -> None:
    value = "2026-11-30T09:00:00."
    assert given_as(value + "0" * (length - len(value)), "on 30 November 2026") == share


@pytest.mark.parametrize(
    ("arguments", "begin"),
    [
        ({"notify": {"mail": ["hi", "ann@example.com"]}}, "lookup: notify.mail[1] = 'ann@example.com' in lookup({"),
        ("A-9", "lookup: the argument = 'A-9' in lookup("),
        ({"id": "x" * 118}, f"lookup: id = '{'x' * 118}' in lookup({{"),
        ({"id": "x" * 119}, f"lookup: id = '{'x' * 119}… in lookup({{"),
    ],
)
def test_evidence_says_where_a_value_stands_and_the_beginning_of_a_long_one(arguments: Any, begin: str) -> None:
    assert finding(told("hi", a_call("lookup", arguments))).evidence.startswith(begin)


def test_what_holds_and_what_was_not_captured_is_said_whole() -> None:
    assert argument_hallucination_rate(told("A-9", a_call("lookup", "A-9"))) == Finding(Outcome.PASS, 0.0, 0.0, 0.0)
    hidden = "arguments_not_captured: of any of 2 calls"
    calls = a_call("lookup"), a_call("refund")
    assert finding(told("hi", *calls)) == Finding(Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 1.0, hidden)
    missing = "tools_not_captured: 1 of 1 values occur in nothing that the agent had been given as far as captured"
    assert finding(told("hi", a_call("lookup", {"id": 7}), tools=())).reason == f"{missing}, the first is lookup: id = 7"


def test_an_agents_own_words_are_no_source_and_all_that_it_was_given_is() -> None:
    calls = (a_call("lookup", {"order_id": "A-1001"}),)
    assert rate(told("hi", *calls, messages=(Message("assistant", "order A-1001"),))) == 1.0
    assert rate(told("hi", *calls, messages=(Message("user", "order A-1001"),))) == 0.0
    assert rate(told("hi", *calls, system="Test with A-1001.")) == 0.0
    assert rate(told("hi", a_call("lookup", {"order_id": "A-77"}))) == 0.0, "a default of the schema"
    assert rate(told("hi", a_call("lookup", {"order_id": "A-78"}))) == 1.0
    odd = ToolDefinition("lookup", schema={"default": PurePosixPath("A-78")})
    assert rate(told("hi", a_call("lookup", {"order_id": "A-78"}), tools=(odd,))) == 0.0, "whatever it is made of"
    assert rate(told("hi", a_call("lookup", {"tool": "refund"}))) == 0.0, "a tool's name"


def _turn(number: int, call: ToolCall, *heard: Message) -> Step:
    start = T0 + number * SECOND
    out = (Message("assistant", tool_calls=(call,)),)
    return Step(f"{number:x}", "a1", "chat", start, start + SECOND // 2, start, kind=StepKind.MODEL, input=heard, output=out)


def test_a_result_is_a_source_for_what_was_asked_for_after_it_and_not_for_its_own_call() -> None:
    first = named(a_call("lookup", {"order_id": "A-1001"}, result="order A-1001, customer C-7"), "c1")
    second = named(a_call("refund", {"customer": "C-7"}), "c2")
    heard = Message("user", "hi")
    one_by_one = (
        _turn(1, first, heard),
        _turn(3, second, heard, Message("tool", "order A-1001, customer C-7", tool_call_id="c1")),
    )
    run = told("hi", first, second, steps=one_by_one)
    assert finding(run).reason.startswith("1 of 2")
    assert finding(run).evidence.startswith("lookup: order_id = 'A-1001'")
    at_once = (
        _turn(1, first, heard),
        Step(
            "2",
            "a1",
            "x",
            T0 + SECOND,
            T0 + SECOND,
            T0,
            kind=StepKind.MODEL,
            input=(heard,),
            output=(Message("assistant", tool_calls=(second,)),),
        ),
    )
    assert rate(told("hi", first, second, steps=at_once)) == 1.0, "asked for before the result was there"


def test_what_comes_with_the_request_for_a_call_was_there_when_it_was_asked_for() -> None:
    call = named(a_call("lookup", {"order_id": "A-1001"}), "c1")
    assert rate(told("hi", call, steps=(_turn(1, call, Message("user", "hi"), Message("user", "order A-1001")),))) == 0.0


def test_a_result_is_a_source_from_the_moment_on_at_which_its_call_ended() -> None:
    """Two agents at once: the first one's lookup runs from 2 to 6 s. What is asked for at 4 s cannot know it; at 8 s it can."""
    first = named(a_call("lookup", {"text": "hi"}, result="customer C-7"), "c1")
    second, third = (named(a_call("refund", {"customer": "C-7"}), name) for name in ("c2", "c3"))
    heard = Message("user", "hi")
    steps = (_turn(1, first, heard), ran(first, 2, 6), _turn(4, second, heard), _turn(8, third, heard))
    assert rate(told("hi", first, second, steps=steps)) == 0.5
    assert rate(told("hi", first, third, steps=steps)) == 0.0
    assert rate(told("hi", first, third, steps=(steps[0], steps[3]))) == 0.0, "nobody saw it end, and it was asked for before"


def test_what_a_search_found_is_a_source_from_its_end_on() -> None:
    call = named(a_call("lookup", {"order_id": "A-1001"}), "c1")
    found = (Message("tool", "see A-1001"), Message("tool", "see A-1002"))
    search = Step("5", "a1", "search", T0 + SECOND, T0 + 3 * SECOND, T0, kind=StepKind.RETRIEVAL, output=found)
    for second, share in ((2, 1.0), (3, 0.0), (4, 0.0)):
        assert rate(told("hi", call, steps=(search, _turn(second, call, Message("user", "hi"))))) == share
    late = msgspec.structs.replace(search, start_ns=T0 + 8 * SECOND, end_ns=T0 + 9 * SECOND)
    again = told("hi", call, steps=(search, _turn(4, call, Message("user", "hi")), late))
    assert rate(again) == 0.0, "it was first found before"
    assert rate(told("hi", call, system="A-1001", steps=(_turn(2, call, Message("user", "hi")), search))) == 0.0


def test_without_times_the_order_of_the_calls_decides() -> None:
    calls = (a_call("lookup", {"order_id": "A-1"}, result="A-1 is C-7"), a_call("refund", {"customer": "C-7"}, result="C-7 A-9"))
    assert rate(told("hi", *calls)) == 0.5
    assert rate(told("hi", *reversed(calls))) == 1.0


def test_what_a_failed_call_returned_is_a_source_and_a_call_that_nobody_made_returned_nothing() -> None:
    failed = a_failure("lookup", {"order_id": "hi"}, error="no such order; did you mean A-9?")
    assert rate(told("hi", failed, a_call("lookup", {"order_id": "A-9"}))) == 0.0
    assert rate(told("hi", a_wish("lookup", {"order_id": "A-9"}), a_call("lookup", {"order_id": "A-9"}))) == 1.0


@pytest.mark.parametrize("arguments", [{}, [], None, {"force": True, "note": None, "text": "", "mark": "…"}])
def test_without_values_there_is_nothing_to_measure(arguments: Any) -> None:
    call = a_call("lookup", arguments, raw_arguments="null" if arguments is None else "")
    assert argument_hallucination_rate(told("hi", call)) is None
    assert argument_hallucination_rate(told("hi")) is None


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        pytest.param({"flags": ("no_content",)}, "messages_not_captured", id="hidden"),
        pytest.param(
            {"steps": (Step("b1", "a1", "chat", T0, T0, T0, kind=StepKind.MODEL),)}, "messages_not_captured", id="no input"
        ),
        pytest.param({"flags": ("truncated",)}, "results_not_captured", id="cut"),
        pytest.param({"flags": ("dropped",)}, "results_not_captured", id="dropped"),
        pytest.param({"tools": ()}, "tools_not_captured", id="no tools"),
        pytest.param({"tools": (REFUND, ToolDefinition("lookup"))}, "schema_not_captured", id="no schema"),
    ],
)
def test_what_is_found_is_found_whatever_is_missing_and_what_is_not_found_may_have_stood_there(changes: Any, word: str) -> None:
    assert rate(told("order A-1", a_call("lookup", {"order_id": "A-1"}), **changes)) == 0.0
    unsure = finding(told("order A-1", a_call("lookup", {"order_id": "A-1", "more": "A-2"}), **changes))
    assert (unsure.outcome, unsure.value, unsure.lower, unsure.upper) == (Outcome.INSUFFICIENT_EVIDENCE, None, 0.0, 0.5)
    assert unsure.reason.startswith(f"{word}: ")


def test_a_run_without_model_calls_was_given_its_request_or_its_messages() -> None:
    call = a_call("lookup", {"order_id": "A-9"})
    assert rate(told("hi", call, steps=())) == 1.0
    assert rate(told("", call, steps=(), messages=(Message("user", "hi"),))) == 1.0
    assert finding(told("", call, steps=())).reason.startswith("messages_not_captured: ")


def test_results_and_arguments_that_were_not_captured() -> None:
    unseen = finding(told("hi", a_call("lookup", {"order_id": "hi"}, result=None), a_call("refund", {"order_id": "A-9"})))
    assert (unseen.outcome, unseen.upper) == (Outcome.INSUFFICIENT_EVIDENCE, 0.5)
    assert unseen.reason.startswith("results_not_captured: ")
    hidden = finding(told("hi", a_call("lookup")))
    assert (hidden.outcome, hidden.value) == (Outcome.INSUFFICIENT_EVIDENCE, None)
    assert hidden.reason.startswith("arguments_not_captured: ")
    assert rate(told("hi", a_call("lookup"), a_call("lookup", {"order_id": "hi"}))) == 0.0, "of what was captured"


# --- laws -----------------------------------------------------------------------------------------------------------------------------

words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=8)
phrases = st.lists(words, min_size=1, max_size=5).map(" ".join)
around = st.text(st.sampled_from(" \n\t,.;:!?\"'()[]{}<>|"), min_size=1, max_size=4)
noise = st.lists(phrases, max_size=5).map(" / ".join)


@given(phrases, noise, noise, around, around)
def test_law_what_was_quoted_was_given(value: str, before: str, after: str, left: str, right: str) -> None:
    found = argument_hallucination_rate(told(f"{before}{left}{value}{right}{after}", a_call("lookup", {"v": value})))
    assert found is None or found.value == 0.0


@given(st.decimals(0, 10**9, places=2, allow_nan=False), noise)
def test_law_a_number_was_given_however_it_was_written(value: Any, before: str) -> None:
    for written in (f"{value}", f"{value:,}", f"{value:.4f}", f"{value:,}".translate({44: ".", 46: ","})):
        assert given_as(float(value), f"{before} {written}!") == 0.0


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)))
def test_law_a_date_was_given_however_it_was_written(day: date) -> None:
    for written in (
        day.isoformat(),
        f"{day:%d.%m.%Y}",
        f"{day:%m/%d/%Y}",
        f"{day:%d %B %Y}",
        f"{day:%b %d, %Y}",
        f"{day:%Y/%m/%d}",
    ):
        assert given_as(day.isoformat(), f"by {written}.") == 0.0


@given(st.uuids(), noise)
def test_law_what_was_never_said_is_found_nowhere(value: UUID, text: str) -> None:
    assert given_as(str(value), text) == 1.0


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda kids: st.lists(kids, max_size=3) | st.dictionaries(words, kids, max_size=3),
    max_leaves=12,
)


@given(st.lists(values, max_size=4), st.text(max_size=60))
def test_law_the_rate_is_a_share_and_more_text_never_raises_it(arguments: list[Any], text: str) -> None:
    calls = [a_call("lookup", one, result=None) for one in arguments]
    less, more = (argument_hallucination_rate(told(said, *calls, tools=(REFUND,))) for said in (text, f"{text} {arguments}"))
    if less is not None and more is not None:
        assert 0.0 <= (more.upper or 0.0) <= (less.upper or 0.0) <= 1.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(
            [f"id-{number}" for number in range(20_000)], " ".join(f"id {number}" for number in range(100_000)), id="many"
        ),
        pytest.param(["a " * 15 + f"b{number}" for number in range(5_000)], "a " * 300_000, id="alike"),
        pytest.param(["a " * 100_000] * 20, "a " * 100_000, id="long"),
        pytest.param([number / 7 for number in range(5_000)], "1,1.1,1" * 100_000, id="numbers"),
        pytest.param(["2026-01-01"] * 100, "1/1/1" * 100_000 + "jan " * 50_000, id="dates"),
        pytest.param(["9" * 100_000], "9" * 1_000_000, id="digits"),
    ],
)
def test_hostile_sizes_take_time_by_their_length_and_not_by_its_square(arguments: list[Any], text: str) -> None:
    run = told(text, a_call("lookup", {"v": arguments}))
    begun = time.process_time()
    assert argument_hallucination_rate(run) is not None
    assert time.process_time() - begun < 8, "each value against all of the text would be hours"


def test_deep_arguments_are_walked() -> None:
    deep: Any = "A-9"
    for _ in range(50_000):
        deep = [deep]
    assert rate(told("A-9", a_call("lookup", {"v": deep}))) == 0.0
