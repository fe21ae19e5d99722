"""What pages are made of, without a browser: excerpts, places of evidence, numbers as words, addresses, and text that acts on nobody."""

import re
from decimal import Decimal

import pytest
from builders import a_step
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from pipeline.apps.pages import render
from pipeline.apps.pages.citations import Cited, Place
from pipeline.apps.pages.excerpt import excerpt
from pipeline.apps.pages.runs_query import CLASSES, OUTCOMES, asked, cursor_text
from pipeline.apps.pages.words import cost, count, duration, number, percent
from pipeline.apps.text import obeyed, visible
from pipeline.errors import ConfigurationError
from pipeline.model.evidence import Found, Question, answered
from pipeline.model.step import Message, Step, StepKind, ToolCall
from pipeline.scorers.reading import quoted
from pipeline.stages.grade import NEEDS_A_PERSON
from pipeline.stages.outline import Entry
from sinks.clickhouse.run_list import Choices, Counts, Cursor

DAY_S = 86_400


def test_a_name_may_be_broken_where_its_words_end_and_is_escaped() -> None:
    assert render.name("argument_hallucination_rate") == "argument_<wbr>hallucination_<wbr>rate"
    assert render.name("<b>_\u202e") == "&lt;b&gt;_<wbr>\\u202e"


def test_a_short_text_is_whole_and_a_long_one_is_cut() -> None:
    whole, cut = excerpt("abc", 3), excerpt("abcd", 3)
    assert ("".join(one.text for one in whole.pieces), whole.whole, whole.length) == ("abc", True, 3)
    assert ("".join(one.text for one in cut.pieces), cut.whole, cut.length) == ("abc…", False, 4)


def test_what_was_quoted_is_marked_and_shown_wherever_it_stands() -> None:
    text = "a" * 1000 + "needle" + "b" * 1000
    found = excerpt(text, 10, ["needle"])
    assert [one.text for one in found.pieces if one.quoted] == ["needle"]
    shown = "".join(one.text for one in found.pieces)
    assert shown == "a" * 10 + "\n[…]\n" + "a" * 200 + "needle" + "b" * 200 + "…"
    assert not found.whole


def test_quotes_that_meet_and_quotes_that_are_not_there_cost_nothing() -> None:
    found = excerpt("one two three", 100, ["one two", "two three", "four", ""])
    assert "".join(one.text for one in found.pieces) == "one two three"
    assert [one.text for one in found.pieces if one.quoted] == ["one two", " three"]
    assert found.whole


@given(st.text(max_size=300), st.integers(1, 50), st.lists(st.text(min_size=1, max_size=5), max_size=4))
def test_an_excerpt_holds_nothing_that_the_text_does_not(text: str, longest: int, quotes: list[str]) -> None:
    found = excerpt(text, longest, quotes)
    assert all(one.text in (text, "\n[…]\n", "…") or one.text in text for one in found.pieces)
    assert found.whole == ("".join(one.text for one in found.pieces) == text)
    marked = {one.text for one in found.pieces if one.quoted}
    assert all(any(mark in quote for quote in quotes) for mark in marked)
    assert not quotes or all(quote in "".join(one.text for one in found.pieces) for quote in quotes if quote in text)


def entries(*steps: Step) -> list[Entry]:
    return [Entry(step, 0, 0, "") for step in steps]


TOOL = a_step(
    "t1",
    kind=StepKind.TOOL,
    tool=ToolCall("refund", arguments={"order_id": "A-1", "amount": 5}, result="the refund is committed"),
)
BROKEN = a_step("t2", kind=StepKind.TOOL, tool=ToolCall("refund", arguments={"order_id": "A-2"}, error="no such order"))
MODEL = a_step(
    "m1",
    kind=StepKind.MODEL,
    input=(Message("system", "Be kind."), Message("user", "Refund A-1.")),
    output=(Message("assistant", "It is done: the refund is committed."),),
)
AGENT = a_step("a1", kind=StepKind.AGENT, output=(Message("assistant", "It is done: the refund is committed."),))


@pytest.mark.parametrize(
    ("evidence", "place"),
    [
        ('refund({"order_id":"A-1","amount":5})', Place("t1")),
        ('refund({"order_id":"A-2"}) → no such order', Place("t2")),
        ("the refund is committed", Place("t1")),
        ("It is done", Place("m1")),
        ('"order_id": "A-2"', Place("t2")),
        ("Refund A-1.", Place(section="request")),
        ("It  is\ndone", Place("m1")),
        ("Be kind.", Place("m1")),
        ("The refund is nowhere", None),
        ("", None),
        ("…", None),
    ],
)
def test_evidence_has_its_place_where_it_was_observed_first(evidence: str, place: Place | None) -> None:
    cited = Cited(entries(AGENT, MODEL, TOOL, BROKEN), "Refund A-1.", "It is done: the refund is committed.")
    assert cited.place(evidence) == place


def test_an_answer_without_steps_is_a_place_too() -> None:
    assert Cited([], "Refund A-1.", "Done.").place("Done.") == Place(section="answer")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (number(None), "–"),
        (number(0.0), "0"),
        (number(4.05), "4.05"),
        (count(None), "–"),
        (count(1234567), "1\u202f234\u202f567"),
        (cost(None), "unknown"),
        (cost(0.0), "$0.00"),
        (cost(Decimal("0.003015")), "$0.003015"),
        (cost(12.5), "$12.50"),
        (cost(Decimal("0.0000004")), "less than $0.000001"),
        (percent(None), "–"),
        (percent(0.6818), "68.2 %"),
        (duration(-1), "–"),
        (duration(0), "0 ms"),
        (duration(1_500_000), "1.5 ms"),
        (duration(250_000_000), "250 ms"),
        (duration(2_040_000_000), "2.0 s"),
        (duration(61_000_000_000), "1 min 01 s"),
        (duration(3_661_000_000_000), "1 h 01 min"),
    ],
)
def test_numbers_are_words_and_the_unknown_is_none(said: str, words: str) -> None:
    assert said == words


def test_an_address_says_what_is_asked_and_what_it_means() -> None:
    found = asked(
        {
            "agent": " plain ",
            "verdict": "fail",
            "from": "2026-09-27T10:00",
            "until": "2026-09-28T10:00:00+02:00",
            "run": "AB",
            "other": "x",
            "tool": "",
        }
    )
    assert found.given == {
        "agent": "plain",
        "verdict": "fail",
        "from": "2026-09-27T10:00:00",
        "until": "2026-09-28T08:00:00",
        "run": "AB",
    }
    assert found.chosen.agent == ("plain",)
    assert (found.chosen.until_ns - found.chosen.since_ns) / 1e9 == DAY_S - 2 * 3600
    assert found.chosen.run == "ab"
    assert found.before is None


def test_the_form_offers_the_flag_of_runs_that_wait_for_a_person_and_keeps_whichever_was_asked_for() -> None:
    found = asked({"flag": " missing_parent "})
    assert (found.given, found.chosen.flag) == ({"flag": "missing_parent"}, "missing_parent")
    nothing = Counts(0, 0, 0, 0, {}, dict.fromkeys(OUTCOMES, 0))
    shown = {"outcomes": OUTCOMES, "classes": CLASSES, "choices": Choices((), (), (), (), ()), "counts": nothing}
    html = render.page(
        "runs.html", project="p", given=found.given, needs_a_person=NEEDS_A_PERSON, runs=[], later=False, older="", **shown
    )
    assert re.search(r'<input id="f-flag" name="flag" value="missing_parent"[^>]*list="l-flag">', html)
    assert '<datalist id="l-flag"><option value="needs_a_person"></option></datalist>' in html


def test_a_cursor_comes_back() -> None:
    cursor = Cursor(1_790_000_000_000_000_003, "ab" * 16)
    assert asked({"before": cursor_text(cursor)}).before == cursor


@pytest.mark.parametrize(
    "query",
    [
        {"verdict": "good"},
        {"class": "x"},
        {"outcome": "fail"},
        {"from": "soon"},
        {"from": "1960-01-01"},
        {"until": "9999-12-31"},
        {"run": "g"},
        {"before": "1-"},
        {"before": "9" * 20 + "-a"},
        {"tool": "t" * 2001},
    ],
)
def test_what_means_nothing_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        asked(query)


def test_a_name_that_was_shown_is_the_name_that_is_meant() -> None:
    name = "a\u202eb\x00 \U000e0041"
    assert asked({"agent": visible(name)}).chosen.agent == (visible(name), name)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=40))
def test_what_is_shown_acts_on_nobody_and_can_be_read_back(text: str) -> None:
    assert obeyed(visible(text)) == obeyed(text.replace("\r\n", "\n"))
    assert not {"\u202e", "\x00", "\x1b", "\u2028"} & set(visible(text))


def test_a_page_with_a_value_that_nobody_gave_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        render.page("message.html", title="t", sentence="s")


def test_text_is_text_and_addresses_stay_on_this_server() -> None:
    hostile = "<b onclick='x'>\u202e javascript:alert(1)"
    made = render.page("message.html", title=hostile, sentence=hostile, candidates=[hostile])
    assert "<b onclick" not in made
    assert "&lt;b onclick=&#39;x&#39;&gt;\\u202e javascript:alert(1)" in made
    assert 'href="/runs/%3Cb%20onclick%3D%27x%27%3E%E2%80%AE%20javascript%3Aalert%281%29"' in made


def test_a_half_character_is_no_reason_to_show_nothing() -> None:
    assert "\\ud83d" in render.page("message.html", title="t", sentence="half \ud83d", candidates=["\ud83d"])


def test_what_a_record_source_answered_is_a_place() -> None:
    question = Question("default", "ab" * 16, "cd" * 16, "payments", "c" * 16, '{"order_id":"A-1"}', "")
    read = answered(question, Found.RECORD, 1_790_000_000_000_000_000, body='{"state":"open"}')
    cited = Cited(entries(TOOL), "", None, [read])
    assert cited.place(quoted(read)) == Place(section=f"record-{read.id}")
