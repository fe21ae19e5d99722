"""The list of runs in a real browser: every filter, paging, links that keep the filter, and what it says when there is nothing."""

import itertools
import re
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from browser.chromium import NARROW, Browser
from browser.hostile import NAME
from browser.shop import PLAIN, SECOND, Shop
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from serving import eventually

pytestmark = pytest.mark.browser
real = pytest.mark.real
"""Of those that take longer; a few of each kind belong to every run of the tests."""
SHORT = 5
"""Filters that do."""
ALL = PLAIN + 4


def listed(browser: Browser) -> list[str]:
    """The runs on the page, by the first digits of their ids."""
    return browser.texts("tbody .id a")


def ids(rows: list[dict[str, object]]) -> list[str]:
    return [str(row["run_id"])[:8] for row in rows]


def received(browser: Browser) -> int:
    found = re.match(r"(\d+) runs? received", browser.one(".counts").text)
    assert found is not None
    return int(found[1])


def fill(browser: Browser, **fields: str) -> None:
    """Fill the form in, and send it with Enter, as from a keyboard."""
    for name, text in fields.items():
        field = browser.one(f"form.filter [name={name}]")
        if field.tag_name == "select":
            Select(field).select_by_value(text)
        elif field.get_attribute("type") == "datetime-local":
            browser.run("arguments[0].value = arguments[1]", field, text)
        else:
            field.clear()
            field.send_keys(text)
    before = browser.driver.current_url
    browser.one("form.filter button").send_keys(Keys.ENTER)
    eventually(lambda: browser.driver.current_url != before)


def every_page(browser: Browser) -> list[str]:
    """Follow the links to older runs to the end."""
    found = listed(browser)
    while links := browser.all("a[rel=next]"):
        links[0].click()
        found += listed(browser)
    return found


def test_the_newest_runs_come_first_and_each_on_one_page(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/runs")
    first = listed(browser)
    ended = [one.text for one in browser.all("tbody .when")]
    assert len(first) == 50
    assert ended == sorted(ended, reverse=True)
    found = every_page(browser)
    assert sorted(found) == sorted(ids(list(itertools.chain(*shop.runs.values()))))
    assert not browser.all("a[rel=next]")
    browser.link("Newest").click()
    assert listed(browser) == first


CASES = [
    ({"agent": "plain"}, {"plain"}, PLAIN),
    ({"version": "2.0"}, {"judged"}, 1),
    ({"environment": "staging"}, {"judged"}, 1),
    ({"verdict": "fail"}, {"plain", "long"}, PLAIN // 10 + 1),
    ({"verdict": "insufficient_evidence"}, {"judged"}, 1),
    ({"class": "unresolved"}, {NAME}, 1),
    ({"class": "judged", "agent": "lead"}, {"lead"}, 1),
    ({"reason": "grader_error"}, {NAME}, 1),
    ({"dimension": "tool_errors"}, {"plain", "lead", "long", "judged", NAME}, ALL),
    ({"dimension": "tool_errors", "outcome": "fail"}, {"lead", NAME}, 2),
    ({"dimension": "no_deletion", "outcome": "fail"}, {"plain", "long"}, PLAIN // 10 + 1),
    ({"dimension": "tone"}, {"judged", NAME}, 2),
    ({"tool": "search"}, {"lead"}, 1),
    ({"tool": "delete_customer", "agent": "long"}, {"long"}, 1),
    ({"conversation": "talk-of-lead"}, {"lead"}, 1),
    ({"agent": "plain", "version": "2.0"}, set(), 0),
]


PARAMETERS = [
    pytest.param(*case, id=" ".join(case[0].values()), marks=() if at < SHORT else real) for at, case in enumerate(CASES)
]


@pytest.mark.parametrize(("fields", "agents", "runs"), PARAMETERS)
def test_every_filter_shows_the_runs_that_meet_it_and_counts_them(
    browser: Browser, shop: Shop, fields: dict[str, str], agents: set[str], runs: int
) -> None:
    browser.open(f"{shop.url}/runs")
    fill(browser, **fields)
    asked = parse_qs(urlsplit(browser.driver.current_url).query)
    assert {name: values[0] for name, values in asked.items()} == fields
    assert received(browser) == runs
    found = every_page(browser)
    assert len(found) == runs
    assert set(found) <= set(itertools.chain(*(ids(shop.runs[agent]) for agent in agents)))
    assert all(set(found) & set(ids(shop.runs[agent])) for agent in agents)


def test_a_time_range_holds_its_beginning_and_not_its_end(browser: Browser, shop: Shop) -> None:
    ends = sorted(row["end_ns"] for row in shop.runs["plain"])
    since, until = ends[10] // SECOND, ends[20] // SECOND
    browser.open(f"{shop.url}/runs")
    fill(browser, agent="plain", **{"from": _field(since), "until": _field(until)})
    wanted = [row for row in shop.runs["plain"] if since * SECOND <= row["end_ns"] < until * SECOND]
    assert listed(browser) == ids(wanted)
    assert browser.one("[name=from]").get_attribute("value") == _field(since)
    assert browser.one("[name=until]").get_attribute("value") == _field(until)


def _field(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def test_a_run_is_found_by_the_beginning_of_its_id(browser: Browser, shop: Shop) -> None:
    run_id = shop.run("lead")
    browser.open(f"{shop.url}/runs")
    fill(browser, run=run_id[:12].upper())
    assert listed(browser) == [run_id[:8]]
    browser.link(run_id[:8]).click()
    assert urlsplit(browser.driver.current_url).path == f"/runs/{run_id}"


@real
def test_links_keep_the_filter(browser: Browser, shop: Shop) -> None:
    fields = {"agent": "plain", "environment": "production", "dimension": "tool_errors", "outcome": "pass"}
    browser.open(f"{shop.url}/runs?{urlencode(fields)}")
    browser.one("a[rel=next]").click()
    asked = parse_qs(urlsplit(browser.driver.current_url).query)
    assert {name: asked[name][0] for name in fields} == fields
    assert len(listed(browser)) == PLAIN - 50
    browser.all("section .counts a")[1].click()
    asked = parse_qs(urlsplit(browser.driver.current_url).query)
    assert {name: asked[name][0] for name in fields} == fields
    assert asked["verdict"] == ["fail"]
    assert received(browser) == PLAIN // 10


def test_what_was_received_is_what_became_of_it(browser: Browser, shop: Shop) -> None:
    for query in ("", "?agent=plain", "?dimension=tone"):
        browser.open(f"{shop.url}/runs{query}")
        total, *parts = [
            int(number)
            for number in re.findall(r"(\d+) (?:runs? |judged|unsampled|unresolved|pending)", browser.one(".counts").text)
        ]
        assert total == sum(parts) > 0
        verdicts = [int(number) for number in browser.texts(".counts a b")]
        assert total == sum(verdicts)
        decided = verdicts[0] + verdicts[1]
        said = browser.one("section .quiet").text
        assert f"Coverage: {100 * decided / total:.1f} %" in said
        assert f"at least {verdicts[0]} and at most {total - verdicts[1]} pass" in said


def test_nothing_found_says_what_to_do(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/runs?agent=nobody")
    assert "No run meets all of this" in browser.one(".note").text
    browser.link("all runs").click()
    assert received(browser) == ALL


@real
@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("verdict=good", "write one of pass, fail, insufficient_evidence, grader_error, pending"),
        ("outcome=fail", "name the dimension too"),
        ("from=yesterday", "write a time in UTC such as"),
        ("run=xyz", "write the beginning of a run id"),
        ("before=1", "begin again at the newest run"),
        ("agent=" + "a" * 3000, "is longer than 2000 characters"),
    ],
    ids=["verdict", "outcome", "from", "run", "before", "agent"],
)
def test_what_cannot_be_asked_is_refused_with_what_to_write(browser: Browser, shop: Shop, query: str, sentence: str) -> None:
    browser.open(f"{shop.url}/runs?{query}")
    assert sentence in browser.one("main").text
    browser.link("All runs").click()
    assert received(browser) == ALL


def test_the_status_page_leads_to_the_runs(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/")
    newest = browser.all("tbody .id a")[0].text
    browser.link("All runs").click()
    assert listed(browser)[0] == newest
    browser.link("Status").click()
    assert "runs received" in browser.one(".counts").text


@real
def test_every_field_has_a_label_and_is_reached_from_the_keyboard_in_order(browser: Browser, shop: Shop) -> None:
    browser.open(f"{shop.url}/runs")
    fields = browser.all("form.filter input, form.filter select")
    assert len(fields) == 14
    for field in fields:
        label = browser.one(f"label[for={field.get_attribute('id')}]")
        assert label.text
        assert field.accessible_name == label.text
    reached = []
    browser.run("document.activeElement.blur()")
    for _ in range(40):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        name = browser.driver.switch_to.active_element.get_attribute("name")
        if name and name not in reached:
            reached.append(name)
    assert reached == [field.get_attribute("name") for field in fields]


@real
@pytest.mark.parametrize("size", [NARROW, (820, 1000), (1100, 1000), (1400, 1000)])
def test_nothing_is_wider_than_the_window(browser: Browser, shop: Shop, size: tuple[int, int]) -> None:
    browser.resize(*size)
    for path in ("/", "/?all", "/runs", *(f"/runs/{rows[0]['run_id']}" for rows in shop.runs.values())):
        browser.open(f"{shop.url}{path}")
        assert browser.run("return document.documentElement.scrollWidth") <= size[0], path
