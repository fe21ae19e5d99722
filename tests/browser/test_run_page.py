"""One run in a real browser: its steps as a tree, what each score rests on, and the way from there to the step."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from browser.chromium import Browser
from browser.hostile import MEGABYTE, NAME
from browser.shop import LONG, Shop, detail
from selenium.webdriver.remote.webelement import WebElement
from serving import eventually

pytestmark = pytest.mark.browser
real = pytest.mark.real
"""Of those that take longer; a few of each kind belong to every run of the tests."""


def opened(browser: Browser, shop: Shop, agent: str, more: str = "") -> str:
    run_id = shop.run(agent) if agent != "plain" else str(shop.runs["plain"][0]["run_id"])
    browser.open(f"{shop.url}/runs/{run_id}{more}")
    return run_id


def facts(browser: Browser) -> dict[str, str]:
    return dict(zip(browser.texts(".facts dt"), browser.texts(".facts dd"), strict=True))


def steps(browser: Browser) -> list[tuple[int, str, str]]:
    """(level, kind, name) of the steps on the page."""
    return [
        (
            int(one.get_attribute("aria-level") or 0),
            one.find_element("css selector", ".kind").text,
            one.find_element("css selector", "strong").text,
        )
        for one in browser.all(".steps > li")
    ]


def score(browser: Browser, dimension: str) -> WebElement:
    return browser.one(f"#score-{dimension}")


def is_seen(browser: Browser, element: WebElement) -> bool:
    """Whether its beginning is inside the window now."""
    top, height = browser.run("return [arguments[0].getBoundingClientRect().top, window.innerHeight]", element)
    return bool(0 <= top < height)


def is_target(browser: Browser, element: WebElement) -> bool:
    """Whether the address names it, and it looks different for that."""
    drawn = browser.run(
        "const drawn = getComputedStyle(arguments[0]); return [arguments[0].matches(':target'), drawn.outlineStyle]", element
    )
    return bool(drawn == [True, "solid"])


def test_the_head_says_what_the_run_was(browser: Browser, shop: Shop) -> None:
    run_id = opened(browser, shop, "plain")
    stored = detail(shop, run_id)
    told = facts(browser)
    assert browser.one("h1").text.split()[0] == "plain"
    assert told["Cohort"] == "plain, version 1.0, production"
    assert told["Counts as"] == "judged"
    assert told["Took"] == "2.0 s"
    assert told["Closed because"] == "head ended"
    assert told["Ended with"] == "answer"
    assert re.sub(r"(?<=\d)\s(?=\d)", "", told["Tokens"]) == "1200 in, 34 out"
    assert told["Cost"].startswith("unknown: ")
    assert told["Conversation"] == "talk-of-plain"
    assert told["Trace"] == stored["line"]["trace_id"]
    assert browser.one("#request").text == "Where is order A-1?"
    assert browser.one("#answer").text == "Order A-1 has shipped."


@real
def test_the_cohort_and_the_conversation_lead_to_their_runs(browser: Browser, shop: Shop) -> None:
    for agent in ("lead", NAME):
        for name in ("Cohort", "Conversation"):
            opened(browser, shop, agent)
            browser.all(".facts dd")[browser.texts(".facts dt").index(name)].find_element("css selector", "a").click()
            assert browser.texts("tbody .id a") == [shop.run(agent)[:8]]


def test_steps_are_a_tree_with_what_was_called_and_what_came_back(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "lead")
    assert steps(browser) == [
        (1, "agent", "lead"),
        (2, "agent", "researcher"),
        (3, "tool", "search"),
        (3, "agent", "critic"),
        (4, "tool", "check_price"),
        (2, "model", "m"),
    ]
    search, check = (browser.all(".steps > li")[at] for at in (2, 4))
    assert '{"limit": 3, "query": "blue kettle"}' in search.text
    assert "three kettles found" in search.text
    assert "by researcher" in search.text
    assert "1.0 s" in search.text
    assert "failed" in check.text
    assert "the price list is away" in check.text
    assert "by researcher/critic" in check.text
    lefts = [one.rect["x"] for one in browser.all(".steps > li")]
    assert lefts[0] < lefts[1] == lefts[5] < lefts[2] == lefts[3] < lefts[4]
    parts = [row.split()[0] for row in browser.texts("#steps tbody tr")]
    assert parts == ["lead", "researcher", "critic"]


def test_each_score_says_what_it_is_made_of(browser: Browser, shop: Shop) -> None:
    run_id = opened(browser, shop, "judged")
    stored = {one["dimension"]: one for one in detail(shop, run_id)["results"]}
    told = {row.find_element("css selector", "th").text: row for row in browser.all("#scores tbody tr")}
    assert set(told) == set(stored)
    for dimension, row in told.items():
        assert str(stored[dimension]["outcome"]).replace("_", " ") in row.text
        assert stored[dimension]["contract"][:8] in row.text
    assert next(iter(told)) == "verdict"
    assert list(told)[1] == "composite"
    assert "0 to 100" in told["composite"].text, "an interval where nothing is decided"
    assert "judged, uncalibrated" in told["tone"].text
    assert "shipped" in told["tone"].text


def test_evidence_jumps_to_the_step_that_it_quotes_and_marks_it(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "lead")
    browser.run("window.scrollTo(0, 0)")
    step = browser.all(".steps > li")[4]
    browser.resize(1400, 500)
    browser.run("window.scrollTo(0, 0)")
    assert not is_seen(browser, step)
    assert not is_target(browser, step)
    score(browser, "tool_errors").find_element("link text", "in its step").click()
    assert is_seen(browser, step)
    assert is_target(browser, step)
    step.find_element("link text", "evidence of tool_errors").click()
    assert is_target(browser, score(browser, "tool_errors"))


def test_a_judges_quote_is_marked_where_it_stands(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "judged")
    score(browser, "tone").find_element("link text", "in its step").click()
    (target,) = browser.all(".steps > li:target")
    assert is_seen(browser, target)
    assert [one.text for one in target.find_elements("css selector", "mark")] == ["shipped"]
    assert target.find_element("css selector", "strong").text == "lookup_order"


def test_evidence_on_another_page_of_steps_is_one_click_away(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "long")
    assert len(browser.all(".steps > li")) == 200
    score(browser, "no_deletion").find_element("link text", "in its step").click()
    (target,) = browser.all(".steps > li:target")
    assert is_seen(browser, target)
    assert target.find_element("css selector", "strong").text == "delete_customer"
    assert f'"order_id": "A-{LONG - 1}"' in target.text
    assert "page 3 of 3" in browser.one("#steps").text
    browser.link("long").click()
    (head,) = browser.all(".steps > li:target")
    assert head.find_element("css selector", ".number").text == "1"


@real
def test_all_steps_of_a_long_run_are_there_once_in_order(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "long")
    numbers = browser.texts(".steps .number")
    while links := browser.all("#steps a[rel=next]"):
        links[0].click()
        numbers += browser.texts(".steps .number")
    assert numbers == [str(number) for number in range(1, LONG + 3)]


@real
def test_a_jump_reaches_what_is_folded(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "lead")
    contract = score(browser, "verdict").find_element("css selector", ".id a")
    contract.click()
    (target,) = browser.all("details:target")
    assert is_seen(browser, target)
    target.find_element("css selector", "summary").click()
    body = json.loads(target.find_element("css selector", "pre").text)
    assert body["dimension"]


def test_judgments_show_each_call_of_the_model(browser: Browser, shop: Shop) -> None:
    run_id = opened(browser, shop, "judged")
    asked = Counter(vote["key"]["dimension"] for vote in detail(shop, run_id)["votes"])
    assert asked
    assert browser.texts("#judge h3") == sorted(asked)
    told = browser.texts("#judge summary")
    assert told == [f"{asked[name]} call{'' if asked[name] == 1 else 's'} of the model" for name in sorted(asked)]
    browser.all("#judge summary")[0].click()
    assert '"score": 4' in browser.one("#judge details").text


def test_versions_are_listed_and_the_one_that_counts_is_marked(browser: Browser, shop: Shop) -> None:
    run_id = opened(browser, shop, "judged")
    rows = browser.texts("#versions tbody tr")
    assert rows[0].startswith(f"{detail(shop, run_id)['version']}, shown")
    browser.open(f"{shop.url}/runs/{run_id}?version=3")
    assert "is not stored" in browser.one("main").text


@real
def test_a_long_value_is_cut_and_comes_whole_as_a_file(browser: Browser, shop: Shop, downloads: Path) -> None:
    opened(browser, shop, NAME)
    for file in downloads.glob("*"):
        file.unlink()
    tool = next(one for one in browser.all(".steps > li.tool"))
    link = tool.find_element("css selector", ".text .whole")
    before = browser.driver.current_url
    link.click()
    found = eventually(lambda: [file for file in downloads.glob("*.txt") if file.stat().st_size])
    text = found[0].read_text(encoding="utf-8")
    assert browser.driver.current_url == before
    assert len(browser.one("html").get_attribute("outerHTML") or "") < len(MEGABYTE) / 2
    assert "<script>owned('script')</script>" in text


@real
@pytest.mark.parametrize(
    "path",
    [
        "/runs/zz",
        "/runs/ffffffffffff",
        "/runs/%00",
        "/runs/..%2f..%2fetc",
        "/runs/{run}/value?of=nothing",
        "/runs/{run}/value?step=0&of=result",
    ],
)
def test_what_is_not_there_is_said_with_a_way_on(browser: Browser, shop: Shop, path: str) -> None:
    browser.open(f"{shop.url}{path.format(run=shop.run('lead'))}")
    assert browser.one("h1").text == "Not found"
    browser.link("All runs").click()
    assert browser.one("h1").text == "Runs"


@real
def test_an_ambiguous_beginning_lists_what_it_may_mean(browser: Browser, shop: Shop) -> None:
    known = sorted(str(row["run_id"]) for row in itertools.chain(*shop.runs.values()))
    digit = next(one[0] for one, other in itertools.pairwise(known) if one[0] == other[0])
    meant = [one for one in known if one.startswith(digit)]
    browser.open(f"{shop.url}/runs/{digit}")
    assert browser.texts("main ul a") == meant[:10]
    browser.all("main ul a")[0].click()
    assert browser.driver.current_url.endswith(meant[0])


@real
def test_headings_tell_the_page_and_no_two_elements_share_a_name(browser: Browser, shop: Shop) -> None:
    for agent in ("lead", "judged", NAME):
        opened(browser, shop, agent)
        levels = browser.run("return [...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
        names = browser.run("return [...document.querySelectorAll('[id]')].map(one => one.id)")
        assert len(names) == len(set(names))
        assert browser.run("return document.documentElement.lang") == "en"
        broken = browser.run(
            "return [...document.querySelectorAll('a[href^=\"#\"]')].map(one => decodeURIComponent(one.hash.slice(1))).filter(name => !document.getElementById(name))"
        )
        assert broken == []


# The contrast of two colours (WCAG 2): of all text on the page, the least. Text that nobody sees and large text are left out.
CONTRAST = """
const linear = value => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
const parse = text => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const ground = one => { for (; one; one = one.parentElement) { const c = parse(getComputedStyle(one).backgroundColor); if (c.length < 4 || c[3] > 0) return c } return [255, 255, 255] };
const found = [];
for (const one of document.querySelectorAll('body *')) {
  if (![...one.childNodes].some(node => node.nodeType === 3 && node.data.trim()) || !one.checkVisibility()) continue;
  const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), one.className + ' ' + one.textContent.slice(0, 40)]);
}
return found.sort((a, b) => a[0] - b[0])[0];
"""


@real
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_can_be_told_from_its_ground(browser: Browser, shop: Shop, scheme: str) -> None:
    browser.emulate(scheme=scheme)
    for path in ("/?all", "/runs", f"/runs/{shop.run('judged')}", f"/runs/{shop.run('lead')}#scores"):
        browser.open(f"{shop.url}{path}")
        least, where = browser.run(CONTRAST)
        assert least >= 4.5, where


@real
def test_on_paper_everything_is_open_and_nothing_is_for_clicking(browser: Browser, shop: Shop) -> None:
    opened(browser, shop, "judged")
    folded = "return document.querySelector('#judge details pre').checkVisibility({contentVisibilityAuto: true})"
    assert not browser.run(folded)
    browser.emulate(media="print")
    assert browser.run(folded)
    assert not browser.one("header nav").is_displayed()
